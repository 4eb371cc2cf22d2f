package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// page STATUS FILE URL METHOD PATH [BODY] opens the page at a URL with its token, as a
// new browser does, makes a request that must be answered so, and writes the answer to
// a file. What changes something has the session's token.
func askPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: page STATUS FILE URL METHOD PATH [BODY]")
	}
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	do := func(method, url, token, body string) (int, []byte) {
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		ts.Check(err)
		if method == http.MethodPost {
			req.Header.Set("Waybill-Token", token)
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := browser.Do(req)
		ts.Check(err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		ts.Check(err)
		return res.StatusCode, b
	}
	base, _, ok := strings.Cut(args[2], "?token=")
	if status, b := do(http.MethodGet, args[2], "", ""); !ok || status != http.StatusOK {
		ts.Fatalf("%s: %d %s", args[2], status, b)
	}
	var session struct{ Token string }
	_, b := do(http.MethodGet, base+"api/v1/session", "", "")
	ts.Check(json.Unmarshal(b, &session))
	status, b := do(args[3], base+strings.TrimPrefix(args[4], "/"), session.Token, strings.Join(args[5:], " "))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
	if fmt.Sprint(status) != args[0] {
		ts.Fatalf("%s %s: %d %s", args[3], args[4], status, b)
	}
}
