package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// names is a value of KindNames. Its being a type of its own keeps viper from
// taking its names for keys, which it would lower-case and split.
type names map[string]string

// mappings is a value of KindMaps, a type of its own for the same reason.
type mappings map[string]names

// schemes is a value of KindSchemes, a type of its own for the same reason.
type schemes map[string]webhook.Scheme

func (s Setting) boolean(t string) (any, *KeyError) {
	switch strings.ToLower(t) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return nil, wrong(s.unwanted(t), "")
}

func (s Setting) integer(t string) (int, *KeyError) {
	n, err := strconv.Atoi(t)
	return n, s.bounded(t, float64(n), err)
}

func (s Setting) number(t string) (any, *KeyError) {
	n, err := strconv.ParseFloat(t, 64)
	return n, s.bounded(t, n, err)
}

func (s Setting) duration(t string) (any, *KeyError) {
	d, err := ParseDuration(t)
	if err != nil {
		return nil, wrong(err.Error(), "")
	}
	return d, nil
}

func (s Setting) choice(t string) (any, *KeyError) {
	if !slices.Contains(s.Choices, t) {
		return nil, wrong(didYouMean(s.unwanted(t), t, s.Choices), "")
	}
	return t, nil
}

func (s Setting) secret(t string) (any, *KeyError) {
	text, fault := cleanSecret([]byte(t))
	return NewSecret(text), fault
}

func (s Setting) plainText(t string) (string, *KeyError) { return t, s.checked(t) }

func (s Setting) size(t string) (any, *KeyError) {
	n, err := ParseSize(t)
	if err != nil {
		return nil, wrong(err.Error(), "")
	}
	return n, s.bounded(t, float64(n), nil)
}

// bounded refuses what is no number, or one outside the setting's bounds.
func (s Setting) bounded(t string, n float64, err error) *KeyError {
	if err != nil || math.IsNaN(n) || n < s.least || n > s.most {
		return wrong(s.unwanted(t), "")
	}
	return nil
}

func (s Setting) checked(t string) *KeyError {
	if s.check == nil || t == "" && s.preset == "" {
		return nil
	}
	if want := s.check(t); want != "" {
		if s.private {
			return wrong("must be "+want, "")
		}
		return wrong("must be "+want+", not "+strconv.Quote(short(t)), "")
	}
	return nil
}

func (s Setting) unwanted(t string) string {
	return "must be " + s.want() + ", not " + strconv.Quote(short(t))
}

func (s Setting) want() string { return s.codec().want }

func (s Setting) bounds() string {
	return " from " + plainNumber(s.least) + " to " + plainNumber(s.most)
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// namesFromTexts takes each text for a NAME=VALUE.
func (s Setting) namesFromTexts(texts []string) (any, *KeyError) {
	all := s.collect()
	for _, t := range texts {
		if name, ok := strings.CutPrefix(t, savedMark); ok && s.fields {
			if _, twice := all.all[savedMark]; twice {
				return nil, wrong("must name one saved mapping, not two", "")
			}
			all.all[savedMark] = name
			continue
		}
		i := strings.IndexByte(t, '=')
		if s.lastCut {
			i = strings.LastIndexByte(t, '=')
		}
		if i < 0 {
			return nil, wrong("must be NAME=VALUE, not "+strconv.Quote(short(t)), s.Help)
		}
		if fault := all.add(t[:i], t[i+1:]); fault != nil {
			return nil, fault
		}
	}
	return all.all, nil
}

// collector gathers names and notices those that are one.
type collector struct {
	Setting
	all  names
	kept map[string]string // what makes a name one with another, to the name
}

func (s Setting) collect() collector { return collector{s, names{}, map[string]string{}} }

// add adds one name, unless it, its value or its repetition is wrong.
func (c collector) add(name, value string) *KeyError {
	if c.fields {
		kept := field(name)
		if kept == "" {
			return wrong(didYouMean("unknown name "+strconv.Quote(short(name)), name, fields()), "known: "+strings.Join(fields(), ", "))
		}
		name = kept
	}
	if want := oneLineFilled(name); want != "" {
		return wrong("name "+strconv.Quote(short(name))+": must be "+want, "")
	}
	if other, twice := c.kept[c.foldedName(name)]; twice {
		return wrong("name "+strconv.Quote(short(name))+" appears twice"+differing(name, other), "")
	}
	if c.check != nil {
		if want := c.check(value); want != "" {
			return wrong("name "+strconv.Quote(short(name))+": must be "+want+", not "+strconv.Quote(short(value)), "")
		}
	}
	c.all[name], c.kept[c.foldedName(name)] = value, name
	return nil
}

// foldedName returns what is the same for names that are one: those of fields are
// compared as written, others without case and outer space.
func (s Setting) foldedName(name string) string {
	if s.fields {
		return name
	}
	return strings.ToLower(strings.TrimSpace(name))
}

func differing(name, other string) string {
	if name == other {
		return ""
	}
	return " (also as " + strconv.Quote(short(other)) + ")"
}

// text shows a decoded value on one line.
func text(v any) string {
	switch v := plain(v).(type) {
	case float64:
		return plainNumber(v)
	case map[string]any:
		return jsonText(v)
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			if _, isObject := item.(map[string]any); isObject {
				return jsonText(v)
			}
			texts[i] = text(item)
		}
		return strings.Join(texts, ",")
	default:
		return fmt.Sprint(v)
	}
}

// jsonText is compact JSON, or nothing for an empty list or map.
func jsonText(v any) string {
	s, err := compactJSON(v)
	if err != nil || s == "[]" || s == "{}" {
		return ""
	}
	return s
}

// compactJSON writes v on one line, with <, > and & as they are.
func compactJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// plain returns a decoded value as JSON's own types: durations, sizes and
// secrets are text, as shown.
func plain(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return FormatDuration(v)
	case fmt.Stringer: // sizes and secrets
		return v.String()
	case tracking.Match:
		return matchEntry(v)
	case tracking.Absent:
		return AbsentEntry(v)
	case webhook.Scheme:
		return schemeEntry(v)
	case names:
		return plainMap(v)
	case mappings:
		return plainMap(v)
	case schemes:
		return plainMap(v)
	case []string:
		return plainList(v)
	case []int:
		return plainList(v)
	case []tracking.Match:
		return plainList(v)
	case []tracking.Absent:
		return plainList(v)
	default:
		return v
	}
}

func plainList[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = plain(item)
	}
	return all
}

func plainMap[T any](items map[string]T) map[string]any {
	all := make(map[string]any, len(items))
	for name, item := range items {
		all[name] = plain(item)
	}
	return all
}
