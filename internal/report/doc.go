// Package report renders trackings as one HTML page that needs nothing beside itself: it
// loads no resource, its policy allows its own style and script alone, and it can be read
// without the script.
package report
