// Package pgtest gives tests a PostgreSQL server: a private one, which ends
// with the process that started it, or the one that WAYBILL_TEST_POSTGRES
// names. It can stop and start the private one, end its sessions, and cut or
// stall the network before it. It is for tests alone.
//
//	url, ok := pgtest.URL(t)
//	if !ok {
//		return // PostgreSQL is missing, and the test's log says so
//	}
package pgtest
