package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// page STATUS FILE URL METHOD PATH [BODY] makes a request with the token of the page's URL,
// that must be answered so, and writes the answer to a file.
func askPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: page STATUS FILE URL METHOD PATH [BODY]")
	}
	base, token, ok := strings.Cut(args[2], "#token=")
	if !ok {
		ts.Fatalf("%s has no token", args[2])
	}
	req, err := http.NewRequest(args[3], base+strings.TrimPrefix(args[4], "/"), strings.NewReader(strings.Join(args[5:], " ")))
	ts.Check(err)
	req.Header.Set("Waybill-Token", token)
	req.Header.Set("Content-Type", "application/json")
	browser := &http.Client{}
	defer browser.CloseIdleConnections()
	res, err := browser.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
	if fmt.Sprint(res.StatusCode) != args[0] {
		ts.Fatalf("%s %s: %d %s", args[3], args[4], res.StatusCode, b)
	}
}
