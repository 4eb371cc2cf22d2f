package view

import "testing"

func TestCredentialsAreKnownByName(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "proxy-authorization": true, "Cookie": true, "Set-Cookie": true, "X-Api-Key": true, "X-Webhook-Token": true, "Client-Secret": true,
		"Host": false, "X-Signature": false, "Content-Type": false, "X-Key-Id": false,
	} {
		if got := IsCredential(name); got != want {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
	}
}
