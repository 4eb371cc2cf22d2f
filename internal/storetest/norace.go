//go:build !race

package storetest

const junkRequests = 100_000 // see refusedSurviveJunk
