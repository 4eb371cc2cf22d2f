package config

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// The parts of a scheme that are not text.
const (
	tolerance  = "timestamp.tolerance"
	acceptWeak = "accept_weak"
)

// sources holds the kinds allowed in parts of the form KIND:NAME, regardless of the other parts of the scheme.
var sources = map[string][]string{
	"signature.from": {"header", "query", "json"},
	"timestamp.from": {"header", "sig", "json"},
}

var schemeParts = sync.OnceValue(func() []Setting {
	all := []Setting{{Key: tolerance, Kind: KindDuration}, {Key: acceptWeak, Kind: KindBool}}
	for _, p := range webhook.Settings() {
		all = append(all, Setting{Key: p.Name, Kind: KindText, check: func(t string) string { return unmet(p, t) }})
	}
	return all
})

func schemeFromNode(n *yaml.Node) (any, error) {
	parts, err := decodeKeys(n, schemeParts(), Origin{})
	if err != nil {
		return nil, err
	}
	s := webhook.Scheme{}.WithDefaults()
	for _, p := range webhook.Settings() {
		if t, ok := parts[p.Name].v.(string); ok {
			*p.Of(&s) = t
		}
	}
	if part, ok := parts[tolerance]; ok {
		if s.Timestamp.Tolerance, _ = part.v.(time.Duration); s.Timestamp.Tolerance == 0 {
			return nil, at(wrong(`must be more than 0, not "0s"`, "omit it to use 5m"), tolerance, part.origin)
		}
	}
	s.AcceptWeak, _ = parts[acceptWeak].v.(bool)
	return s, nil
}

func unmet(p webhook.Setting, value string) string {
	defaults := webhook.Scheme{}.WithDefaults()
	if p.Words != nil && !slices.Contains(p.Words, value) && (value != "" || *p.Of(&defaults) != "") {
		return "one of " + p.Choices()
	}
	kinds := sources[p.Name]
	if kinds == nil || value == *p.Of(&defaults) {
		return ""
	}
	kind, name, _ := strings.Cut(value, ":")
	if !slices.Contains(kinds, kind) || name == "" && kind != "json" {
		return "one of " + strings.Join(kinds, ":…, ") + ":…"
	}
	if kind == "json" {
		return pointer(name)
	}
	return filledLineError(name)
}

// SchemeSettings returns a scheme with every part, as maps of JSON types.
func SchemeSettings(s webhook.Scheme) map[string]any {
	s = s.WithDefaults()
	parts := viper.New()
	for _, p := range webhook.Settings() {
		parts.Set(p.Name, *p.Of(&s))
	}
	parts.Set(tolerance, FormatDuration(s.Timestamp.Tolerance))
	parts.Set(acceptWeak, s.AcceptWeak)
	return parts.AllSettings()
}

func pointer(s string) string {
	if _, ok := jsonscan.ParsePointer(s); !ok {
		return "an RFC 6901 pointer such as /meta/code"
	}
	return ""
}
