package storetest

import "testing"

// Inbox tests a store against the contract of package inbox.
func Inbox(t *testing.T, h Harness) {
	t.Helper()
	suite(t, h, inboxTests)
}

var inboxTests = map[string]func(*world){}
