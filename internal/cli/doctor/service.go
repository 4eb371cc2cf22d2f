package doctor

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const (
	maxSkew    = 2 * time.Minute     // signatures may be a few minutes old
	expiryNear = 14 * 24 * time.Hour // certificates are usually renewed earlier
)

func (x *examination) connection(ctx context.Context) []finding {
	c := x.call.Config
	u, err := url.Parse(c.BaseURL)
	if c.BaseURL == "" || err != nil {
		return []finding{found(urlMissing, "%v", config.ErrNoBaseURL), found(connectionUnknown, "there is no base URL")}
	}
	all := []finding{found(urlFound, "%s (%s)", forward.ShowURL(u), c.Origin("base_url"))}
	if u.Scheme == "http" {
		if _, here := config.SameLoopback(c.BaseURL); !here {
			all = append(all, found(urlUnencrypted, "%s is not encrypted", forward.ShowURL(u)))
		}
	}
	if x.offline {
		return append(all, found(connectionUnknown, "--offline"))
	}
	client, err := x.call.NewClient(c.BaseURL, "")
	if err != nil { // ca_file is unusable
		return append(all, found(authoritiesUnusable, "%v", err), found(connectionUnknown, "ca_file can't be used"))
	}
	defer client.Close()
	return append(all, contactFindings(client.Contact(ctx))...)
}

func contactFindings(c api.Contact) []finding {
	var all []finding
	if c.Proxy != nil {
		all = append(all, found(proxyUsed, "requests go through %s", c.Proxy.Host))
	}
	if c.Err != nil {
		return append(all, failureFinding(c))
	}
	all = append(all, found(connected, "%s answered %d after %s", c.Address, c.Status, c.Took.Round(time.Millisecond)))
	if c.TLS != nil {
		all = append(all, certificateFinding(c.TLS))
	}
	switch {
	case !c.HasDate:
		return append(all, found(clockUnknown, "the service sends no time"))
	case c.Skew.Abs() > maxSkew:
		side := "ahead of"
		if c.Skew > 0 {
			side = "behind"
		}
		return append(all,
			found(clockWrong, "this computer's clock is %s %s the service's", webhook.FormatSkew(c.Skew), side))
	}
	return append(all, found(clockRight, "within %s of the service's", (c.Skew.Abs()+time.Second).Truncate(time.Second)))
}

func failureFinding(c api.Contact) finding {
	dns, unknown := errors.AsType[*net.DNSError](c.Err)
	switch {
	case !command.As[*api.ConnectError](c.Err):
		return found(proxyUnusable, "%v", c.Err)
	case c.Proxy != nil && (c.Address == "" || command.As[*api.ProxyError](c.Err)):
		return found(proxyFailed, "%s: %v", c.Proxy.Host, c.Err)
	case unknown:
		return found(hostUnknown, "%s: %s", dns.Name, dns.Err)
	case command.As[x509.UnknownAuthorityError](c.Err):
		return found(certificateUntrusted, "%v", c.Err)
	case command.As[*tls.CertificateVerificationError](c.Err):
		return found(certificateInvalid, "%v", c.Err)
	}
	return found(connectionFailed, "%v", c.Err)
}

func certificateFinding(state *tls.ConnectionState) finding {
	chain := state.VerifiedChains[0] // there is one: the connection was verified
	first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	day := first.NotAfter.UTC().Format(time.DateOnly)
	if time.Until(first.NotAfter) < expiryNear {
		return found(certificateExpiring, "the certificate %s expires on %s", first.Subject, day)
	}
	return found(certificateValid, "%s, certificates valid until %s", tls.VersionName(state.Version), day)
}

func (x *examination) access(ctx context.Context) []finding {
	switch {
	case x.offline:
		return []finding{found(keyNotTried, "--offline")}
	case x.call.Config.BaseURL == "":
		return []finding{found(keyNotTried, "there is no base URL")}
	}
	client, err := x.call.Client()
	if err != nil {
		return []finding{found(keyNotTried, "there is no usable key or ca_file")}
	}
	item := tracking.Item{ReferID: "waybill-doctor-" + rand.Text()[:12], Number: randomNumber()}
	return []finding{accessFinding(client.Find(ctx, tracking.Query{ReferID: item.ReferID}, item))}
}

// accessFinding returns what the response to a query for an unknown tracking says about the key.
//
// Assumed: a service that refuses a key answers 401 or 403.
func accessFinding(f tracking.Finding) finding {
	status, _ := errors.AsType[*api.StatusError](f.Err)
	switch {
	case f.Status == 0:
		return found(keyNotTried, "no response")
	case f.Unauthorized:
		return found(keyRefused, "%v", f.Err)
	case f.Systemic:
		return found(responseUnexpected, "%v", f.Err)
	case status != nil && (f.Throttled || status.Status >= http.StatusInternalServerError):
		return found(serviceInTrouble, "%v", f.Err)
	case status == nil && f.Err != nil, !f.Body.JSON():
		return found(responseUnexpected, "the response with status %d is not complete JSON", f.Status)
	}
	return found(keyAccepted, "the key is accepted")
}
