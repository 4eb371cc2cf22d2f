package forward_test

import (
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// delivered is one event, as it is stored.
func delivered(t *testing.T) inbox.Event {
	t.Helper()
	body := []byte(`[{"eventId":"1","event":"router.delivered","data":{"trackingNumber":"1Z1","status":1,"statusTrack":"delivered","a/b":[{"~x":"ü"}],"no":null,"summary":{"statusLabel":"DELIVERED","big":12345678901234567890}}}]`)
	d := inbox.Delivery{Body: body, Verified: inbox.Yes}
	rows := inbox.Prepare(d, webhook.Decode(body))
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows[0]
}

func TestFilterMatches(t *testing.T) {
	e := delivered(t)
	for text, want := range map[string]bool{
		"":                                       true,
		"event=router.delivered":                 true,
		"event=router.*":                         true,
		"event=*":                                true,
		"event=router":                           false,
		"event=Router.delivered":                 false,
		"status=1":                               true,
		"status=2":                               false,
		"status=deliver*":                        true,
		"statusTrack=delivered":                  true,
		"statusTrack= Delivered":                 true,
		"statusTrack=deliver":                    false,
		"statusTrack=DELIVER*":                   true,
		"number=1Z1":                             true,
		"number=1z\u00a0\u20111":                 true,
		"number=1 z-*":                           true,
		"number=1Z*,status=1":                    true,
		"number=1Z*,status=2":                    false,
		"/data/summary/statusLabel=D*":           true,
		"/data/summary/big=12345678901234567890": true,
		"/data/a~1b/0/~0x=ü":                     true,
		"/data/a~1b/1/~0x=ü":                     false,
		"/data/a~1b/00/~0x=ü":                    false,
		"/data/no=*":                             false,
		"/data/no=null":                          false,
		"/data/summary=*":                        false,
		"/nowhere/at/all=*":                      false,
		"/data/status/deeper=1":                  false,
		"/eventId=1":                             true,
	} {
		f, err := forward.ParseFilter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.Match(e); got != want {
			t.Errorf("%s: %v; want %v", text, got, want)
		}
		again, err := forward.ParseFilter(f.String())
		if err != nil || again.String() != f.String() {
			t.Errorf("%s: written as %q, read as %q (%v)", text, f, again, err)
		}
	}
	var status forward.Filter
	if !status.Match(inbox.Event{}) {
		t.Error("the zero filter does not match all")
	}
	f, err := forward.ParseFilter("status=odd")
	if err != nil || !f.Match(inbox.Event{Event: webhook.Event{Status: `"odd"`}}) {
		t.Errorf("a status that is a text does not match (%v)", err)
	}
}

func TestFilterIsOneSpelling(t *testing.T) {
	a, errA := forward.ParseFilter("status=1,event=x*")
	b, errB := forward.ParseFilter("event=x*,status=1")
	if errA != nil || errB != nil || a.String() != b.String() {
		t.Errorf("%q and %q are one (%v, %v)", a, b, errA, errB)
	}
}

func TestFilterRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"delivered":       "not KEY=VALUE",
		"kind=x":          `key "kind"`,
		"Event=x":         `key "Event"`,
		"event=":          "no value",
		"event=a*b":       "at the end",
		"event=a**":       "at the end",
		"event=a,event=b": "twice",
		"event=a,":        "not KEY=VALUE",
		" event=a":        `key " event"`,
		"/a~2=x":          "JSON pointer",
		"=x":              `key ""`,
	} {
		if _, err := forward.ParseFilter(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
}

func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:3000":               "http://127.0.0.1:3000 ",
		"event=x=>https://app.test/hook?a=b":  "https://app.test/hook?a=b event=x",
		"3000":                                "http://127.0.0.1:3000 ",
		":3000/hook?a=b":                      "http://127.0.0.1:3000/hook?a=b ",
		"event=x=>3000/hook":                  "http://127.0.0.1:3000/hook event=x",
		"localhost:3000":                      "http://localhost:3000 ",
		"localhost/hook":                      "http://localhost/hook ",
		"[::1]:3000":                          "http://[::1]:3000 ",
		"status=1,event=x => http://[::1]:1/": "http://[::1]:1/ event=x,status=1",
		"http://localhost/?odd=>1":            "http://localhost/?odd=>1 ",
		"/data/summary/statusLabel=D*=>http://localhost/%2F": "http://localhost/%2F /data/summary/statusLabel=D*",
	} {
		target, err := forward.ParseTarget(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if k := target.Key(); k.Name != "forward" || k.URL+" "+k.Filter != want {
			t.Errorf("%s: %+v; want %q", text, k, want)
		}
		if s := target.Show(); strings.Contains(s, "?") {
			t.Errorf("%s is shown as %s", text, s)
		}
	}
	for _, text := range []string{
		"", "app.test:3000", "10.0.0.1:3000", "0", "65536", ":", ":x", "localhost:", "localhost:x", "3000x", "http://x:70000/", "ftp://x/", "http://", "http:///x", "http://:80/", "http://u:secret@x/", "http://x/#secret",
		"=>http://x/", "kind=x=>http://x/", "event=x=>", "http:x", "http://x/\x7f?secret", "event=x=>event=y=>http://x/",
	} {
		target, err := forward.ParseTarget(text)
		if err == nil {
			t.Errorf("%q became %+v", text, target)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows it: %v", text, err)
		}
	}
}

func TestTokensOfAddressesAreMasked(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:3000":      "http://127.0.0.1:3000",
		"http://127.0.0.1:3000/hook": "http://127.0.0.1:3000/hook",
		"https://app.test/shipment-tracking-v2-webhook/orders2024/12345678901234": "https://app.test/shipment-tracking-v2-webhook/orders2024/12345678901234",
		"https://app.test/a%2Fb/internationalization":                             "https://app.test/a%2Fb/internationalization",
		"https://u:secret@app.test/":                                              "https://app.test/",
		"https://app.test/hook?token=secret":                                      "https://app.test/hook?***",
		"https://chat.test/services/T000/B000/aB3dEf6hIj9LmN0pQrStUvWx":           "https://chat.test/services/T000/B000/***",
		"https://app.test/hooks/0e6f1c2a-9b7d-4c1e-8f3a-5d2b7c9e1a4f/x":           "https://app.test/hooks/***/x",
		"https://bot.test/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/send":   "https://bot.test/***/send",
		"/signed-in?next=secret":                                                  "/signed-in?***",
		"mailto:secret@app.test":                                                  "***",
		"http://[secret":                                                          "***",
	} {
		if got := forward.ShowAddress(address); got != want {
			t.Errorf("%s is shown as %s; want %s", address, got, want)
		}
	}
}

func TestClear(t *testing.T) {
	for text, want := range map[string]bool{
		"http://127.0.0.1/": false, "http://localhost:3/": false, "http://app.localhost/": false, "http://[::1]/": false, "https://app.test/": false,
		"http://app.test/": true, "http://10.0.0.1/": true,
	} {
		target, err := forward.ParseTarget(text)
		if err != nil || target.Unencrypted() != want {
			t.Errorf("%s: %v (%v); want %v", text, target.Unencrypted(), err, want)
		}
	}
}
