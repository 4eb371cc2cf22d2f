package view

import (
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
)

// Sink shows a sink: its filter, and where it sends to.
func Sink(k inbox.Sink) string {
	name := Target(k)
	if k.Filter != "" {
		name = k.Filter + "=>" + name
	}
	return name
}

// Target shows the URL of a sink, with what may be a token masked.
func Target(k inbox.Sink) string {
	u, err := forward.ParseURL(k.URL)
	if err != nil {
		return forward.Masked
	}
	return forward.ShowURL(u)
}
