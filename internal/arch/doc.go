// Package arch holds the shape of the project by tests: who may import whom, which package owns which dependency, who
// may name a concrete store, that doc comments cite headings which exist and docs/tour.md names that exist, that no
// test is skipped, that names are plain words, and how large things may get. What a linter can hold stands in
// .golangci.yml.
//
// It reads the sources as text, so it needs nothing to be built first. Each
// rule is proven on small sources that break it.
package arch
