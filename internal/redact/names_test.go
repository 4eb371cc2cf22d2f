package redact

import "testing"

func TestCredentialsAreKnownByName(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "proxy-authorization": true, "Cookie": true, "Set-Cookie": true, "X-Api-Key": true, "X-Webhook-Token": true, "Client-Secret": true,
		"X-Auth": true, "api_key": true, "X_Api_Key": true, "X-Auth-Key": true, "passwd": true, "X-Pwd": true, "jwt": true,
		"Host": false, "X-Signature": false, "Content-Type": false, "X-Key-Id": false, "X-Author": false, "X-Auth-Signature": false, "X-Auth-Timestamp": false, "X-Session": false, "key": false, "sig": false,
	} {
		if got := IsCredential(name); got != want {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
	}
}

func TestCredentialsOfQueriesAreKnownByName(t *testing.T) {
	for name, want := range map[string]bool{
		"access_token": true, "apikey": true, "api-key": true, "api_key": true, "api%5Fkey": true, "apiToken": true, "client_secret": true, "Key": true, "sig": true, "signature": true,
		"auth": true, "pwd": true, "passwd": true, "jwt": true, "bearer": true, "session": true, "X-Amz-Signature": true, "X-Amz-Credential": true, "code": true,
		"carrier_code": false, "monkey": false, "design": false, "author": false, "q": false, "": false, "status": false, "%zz": false,
	} {
		if got := IsCredentialParameter(name); got != want {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
	}
}
