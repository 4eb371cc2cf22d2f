package inspect

import (
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// maxInlineBody is how long a body is, in bytes, that is a word of a command. Linux allows
// 128 KiB, and quotes are written as four characters.
const maxInlineBody = 32 << 10

type curlJSON struct {
	Command string   `json:"command"`
	File    string   `json:"file"` // name of the download that it reads the body from; empty if it has the body
	Notes   []string `json:"notes"`
}

type curlCommand struct {
	words []string
	curlJSON
}

func (p *Page) curl(r *http.Request) (any, error) {
	d, err := p.findWhole(r)
	if err != nil {
		return nil, err
	}
	c := curlCommand{curlJSON: curlJSON{Notes: []string{}}}
	var t forward.Target
	if id := r.URL.Query().Get("target"); id != "" {
		t, err = p.target(id)
	} else if t.URL, err = forward.ParseURL("3000"); err == nil {
		c.note("replace http://127.0.0.1:3000 by the address of your endpoint")
	}
	if err != nil {
		return nil, err
	}
	withhold, err := p.Call.SecretMatcher()
	if err != nil {
		return nil, err
	}
	plain := d.Delivery.Delivery
	plain.Seq = 0 // the headers of waybill are not the sender's
	m, err := forward.BuildMessage(plain, t.URL, 0, withhold)
	if err != nil {
		return nil, err
	}
	headers, err := p.curlHeaders(d, m, t, withhold)
	if err != nil {
		return nil, err
	}
	c.words = []string{"curl", "--request", m.Method}
	c.addHeaders(headers)
	c.addBody(d)
	c.addURL(d, t, m)
	c.Command = shell.Line(c.words...)
	return c.curlJSON, nil
}

// note adds a note, once.
func (c *curlCommand) note(text string) {
	if !slices.Contains(c.Notes, text) {
		c.Notes = append(c.Notes, text)
	}
}

// curlHeaders returns the headers of a message and those that a target does not get, with
// credentials masked, but for a signature.
func (p *Page) curlHeaders(d found, m webhook.Request, t forward.Target, withhold func(webhook.Field) bool) ([]view.Header, error) {
	fields := m.Header
	for _, f := range d.Header {
		if strings.EqualFold(f.Name, "Authorization") || strings.EqualFold(f.Name, "Cookie") || withhold(f) {
			fields = append(fields, webhook.Field{Name: f.Name, Value: webhook.Mask})
		}
	}
	own := slices.Clone(t.Headers)
	for i := range own {
		own[i].Value = webhook.Mask
	}
	fields = forward.ReplaceHeaders(webhook.Request{Header: fields}, own).Header
	shown, err := view.MaskedHeaders(p.Call.Session, fields, false)
	if err != nil {
		return nil, err
	}
	scheme, err := p.Call.Scheme(p.Call.Config.Webhook.Scheme)
	if err != nil || scheme.Kind == webhook.KindToken {
		return shown, nil //nolint:nilerr // without a scheme no header is known to be a signature
	}
	from := strings.TrimPrefix(scheme.WithDefaults().Signature.From, "header:")
	for i, f := range fields {
		if strings.EqualFold(f.Name, from) {
			shown[i].Value = d.mask.text(f.Value)
		}
	}
	return shown, nil
}

func (c *curlCommand) addHeaders(headers []view.Header) {
	for _, name := range []string{"Accept", "Content-Type", "User-Agent"} {
		if !slices.ContainsFunc(headers, func(h view.Header) bool { return strings.EqualFold(h.Name, name) }) {
			c.words = append(c.words, "--header", name+":")
		}
	}
	for _, h := range headers {
		switch {
		case term.Visible(h.Value) != h.Value:
			c.note("left out: " + h.Name + ", which has characters that can't be typed")
			continue
		case h.Value == "":
			c.words = append(c.words, "--header", h.Name+";")
			continue
		case strings.Contains(h.Value, webhook.Mask):
			c.note("replace " + webhook.Mask + " by what is masked")
		}
		c.words = append(c.words, "--header", h.Name+": "+h.Value)
	}
}

// addBody adds the bytes of the body, or the file to read them from.
func (c *curlCommand) addBody(d found) {
	text := string(d.Body)
	switch hidden := string(d.mask.json(json.RawMessage(d.Body))) != text || d.mask.text(text) != text; {
	case hidden, len(text) > maxInlineBody, runtime.GOOS == "windows", strings.Contains(text, "\t"), term.VisibleText(text) != text: // PowerShell changes quotes in words of programs
		c.File = bodyFile(d.Delivery)
		c.words = append(c.words, "--header", "Expect:", "--data-binary", "@"+c.File)
		c.note("download the body first: the command reads it from " + c.File)
	case strings.HasPrefix(text, "@"):
		c.words = append(c.words, "--data-raw", text) // as --data-binary, but without reading a file
	default:
		c.words = append(c.words, "--data-binary", text)
	}
}

// addURL adds where to send to, with what may be a token masked.
func (c *curlCommand) addURL(d found, t forward.Target, m webhook.Request) {
	address := forward.ShowURL(t.URL)
	if t.URL.EscapedPath() == "" {
		address += d.mask.text(m.Path)
	}
	var queries []string
	if t.URL.RawQuery != "" {
		queries = append(queries, webhook.Mask)
	}
	if d.RawQuery != "" {
		queries = append(queries, d.mask.query(d.RawQuery))
	}
	if len(queries) > 0 {
		address += "?" + strings.Join(queries, "&")
	}
	if strings.Contains(address, webhook.Mask) {
		c.note("replace " + webhook.Mask + " by what is masked")
	}
	if strings.ContainsAny(address, "[]{}") {
		c.words = append(c.words, "--globoff")
	}
	if strings.Contains(address, "/.") {
		c.words = append(c.words, "--path-as-is")
	}
	c.words = append(c.words, term.Visible(address))
}
