//go:build !windows

package main_test

import "testing"

// forSystem returns those of the transcripts that this system runs, as it runs them: all.
func forSystem(_ *testing.T, all []string) []string { return all }
