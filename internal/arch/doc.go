// Package arch holds the shape of the project by tests: who may import whom,
// which package owns which dependency, which calls nobody makes, that doc
// comments cite headings which exist, and how large things may get.
//
// It reads the sources as text, so it needs nothing to be built first. Each
// rule is proven on small sources that break it.
package arch
