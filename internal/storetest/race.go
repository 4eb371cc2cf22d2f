//go:build race

package storetest

const junkRequests = 10_000 // see refusedSurviveJunk
