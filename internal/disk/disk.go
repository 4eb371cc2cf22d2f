// Package disk says what the file system knows and the standard library does
// not show: how much room is left, who besides the user may change a file. It
// makes files that leave nothing behind.
package disk
