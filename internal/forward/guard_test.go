package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestForbidden(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "8.8.8.8": false, "fd00::1": false, "2001:db8::1": false,
		"169.254.169.254": true, "169.254.0.1": true, "fe80::1": true, "fe80::1%eth0": true, "::ffff:169.254.169.254": true,
		"fd00:ec2::254": true, "100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true, "224.0.0.1": true, "ff02::1": true,
		"255.255.255.255": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b::808:808": false, "2002:a9fe:a9fe::1": true, "::169.254.169.254": true,
		"::ffff:0:169.254.169.254": true, "::ffff:0:8.8.8.8": false, "fd00:ec2::23": true, "0.0.0.0": false, "::": false, "169.253.255.255": false,
	} {
		if got := isForbidden(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v; want %v", text, got, want)
		}
	}
}

// names is a name server whose every name leads to the given address.
func names(t *testing.T, to func() netip.Addr) *net.Resolver {
	t.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		q := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(q)
			if err != nil {
				return
			}
			end := 12 + strings.IndexByte(string(q[12:n]), 0) + 5 // of the question
			answer := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
			if binary.BigEndian.Uint16(q[end-4:]) == 1 { // A
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, to().AsSlice()...)
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name may lead somewhere else each time: what counts is where it leads when
// it is dialled.
func TestGuardedAgainstRebinding(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	var to atomic.Pointer[netip.Addr]
	leadTo := func(text string) {
		ip := netip.MustParseAddr(text)
		to.Store(&ip)
	}
	leadTo("127.0.0.1")
	c := NewClient(ClientOptions{Timeout: 5 * time.Second})
	defer c.Close()
	c.dialer.Resolver = names(t, func() netip.Addr { return *to.Load() })
	target, err := ParseTarget("http://rebound.test:" + srv.URL[strings.LastIndex(srv.URL, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	m := webhook.Request{Method: "POST", Path: "/", Header: []webhook.Field{{Name: "Connection", Value: "close"}}}
	if a, err := c.Send(t.Context(), target.URL, m); err != nil || a.Status != 404 {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, text := range []string{"169.254.169.254", "100.100.100.200"} {
		c.Close() // so that it dials again
		leadTo(text)
		if a, err := c.Send(t.Context(), target.URL, m); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	if target.Forbidden() {
		t.Error("the name is forbidden")
	}
}
