package config

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// names is a value of KindNames. Its being a type of its own keeps viper from
// taking its names for keys, which it would lower-case and split.
type names map[string]string

// schemes is a value of KindSchemes, a type of its own for the same reason.
type schemes map[string]Scheme

// fromTexts decodes what a flag or an environment variable holds. A flag of a
// list or of names may come several times; of others the last one counts.
func (s setting) fromTexts(texts []string) (any, *KeyError) {
	switch s.Kind {
	case KindNames:
		return s.namesFromTexts(texts)
	case KindList:
		return s.listFromTexts(texts)
	case KindIntegers:
		return s.integersFromTexts(texts)
	case KindMatches, KindAbsents, KindSchemes:
		return nil, wrong("wants JSON: "+s.want(), "")
	default:
		return s.fromText(texts[len(texts)-1])
	}
}

// fromText decodes one text of a kind that is neither list nor names.
func (s setting) fromText(t string) (any, *KeyError) {
	switch s.Kind {
	case KindBool:
		return s.boolean(t)
	case KindInteger:
		return s.integer(t)
	case KindNumber:
		n, err := strconv.ParseFloat(t, 64)
		return n, s.bounded(t, n, err)
	case KindDuration:
		d, err := ParseDuration(t)
		if err != nil {
			return nil, wrong(err.Error(), "")
		}
		return d, nil
	case KindSize:
		return s.size(t)
	case KindChoice:
		if !slices.Contains(s.Choices, t) {
			return nil, wrong(didYouMean(s.unwanted(t), t, s.Choices), "")
		}
		return t, nil
	case KindSecret:
		text, fault := cleanSecret([]byte(t))
		return NewSecret(text), fault
	default:
		return t, s.checked(t)
	}
}

func (s setting) boolean(t string) (any, *KeyError) {
	switch strings.ToLower(t) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return nil, wrong(s.unwanted(t), "")
}

func (s setting) integer(t string) (int, *KeyError) {
	n, err := strconv.Atoi(t)
	return n, s.bounded(t, float64(n), err)
}

func (s setting) size(t string) (any, *KeyError) {
	n, err := ParseSize(t)
	switch {
	case err != nil:
		return nil, wrong(err.Error(), "")
	case float64(n) < s.least || float64(n) > s.most:
		return nil, wrong(s.unwanted(t), "")
	}
	return n, nil
}

// bounded refuses what is no number, or one outside the setting's bounds.
func (s setting) bounded(t string, n float64, err error) *KeyError {
	if err != nil || math.IsNaN(n) || n < s.least || n > s.most {
		return wrong(s.unwanted(t), "")
	}
	return nil
}

func (s setting) checked(t string) *KeyError {
	if s.check == nil || t == "" && s.preset == "" {
		return nil
	}
	if want := s.check(t); want != "" {
		if s.private {
			return wrong("wants "+want, "")
		}
		return wrong("wants "+want+", not "+strconv.Quote(short(t)), "")
	}
	return nil
}

// unwanted says that t is not what the setting wants.
func (s setting) unwanted(t string) string {
	return "wants " + s.want() + ", not " + strconv.Quote(short(t))
}

// want says what the setting takes.
func (s setting) want() string {
	switch s.Kind {
	case KindChoice:
		return "one of " + strings.Join(s.Choices, ", ")
	case KindBool:
		return "true or false"
	case KindInteger:
		return "a whole number" + s.bounds()
	case KindIntegers:
		return "whole numbers" + s.bounds()
	case KindNumber:
		return "a number" + s.bounds()
	case KindDuration:
		return "a duration such as 30s, 2m, 1h or 7d"
	case KindSize:
		return "a size from " + Size(s.least).String() + " to " + Size(s.most).String()
	case KindPath:
		return "the path of a file"
	case KindList:
		return "a list of texts"
	case KindNames:
		return "names with a text each"
	case KindMatches:
		return "a list of {path, equals}"
	case KindAbsents:
		return "a list of {status, message, path, equals}"
	case KindSchemes:
		return "names with a signature scheme each"
	default:
		return "text"
	}
}

func (s setting) bounds() string {
	return " from " + plainNumber(s.least) + " to " + plainNumber(s.most)
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// listFromTexts takes each text for an item.
func (s setting) listFromTexts(texts []string) (any, *KeyError) {
	for _, t := range texts {
		if fault := s.checked(t); fault != nil {
			return nil, fault
		}
	}
	return slices.Clone(texts), nil
}

func (s setting) integersFromTexts(texts []string) (any, *KeyError) {
	list := []int{}
	for _, t := range texts {
		n, fault := s.integer(t)
		if fault != nil {
			return nil, fault
		}
		list = append(list, n)
	}
	return list, nil
}

// namesFromTexts takes each text for a NAME=VALUE.
func (s setting) namesFromTexts(texts []string) (any, *KeyError) {
	all := s.collect()
	for _, t := range texts {
		i := strings.IndexByte(t, '=')
		if s.lastCut {
			i = strings.LastIndexByte(t, '=')
		}
		if i < 0 {
			return nil, wrong("wants NAME=VALUE, not "+strconv.Quote(short(t)), s.Help)
		}
		if fault := all.add(t[:i], t[i+1:]); fault != nil {
			return nil, fault
		}
	}
	return all.all, nil
}

// collector gathers names and notices those that are one.
type collector struct {
	setting
	all  names
	kept map[string]string // what makes a name one with another, to the name
}

func (s setting) collect() collector { return collector{s, names{}, map[string]string{}} }

// add adds one name, unless it, its value or its repetition is wrong.
func (c collector) add(name, value string) *KeyError {
	if c.rename != nil {
		kept := c.rename(name)
		if kept == "" {
			return wrong(didYouMean("unknown name "+strconv.Quote(short(name)), name, c.names), "known: "+strings.Join(c.names, ", "))
		}
		name = kept
	}
	if want := oneLineFilled(name); want != "" {
		return wrong("name "+strconv.Quote(short(name))+": wants "+want, "")
	}
	if other, twice := c.kept[c.one(name)]; twice {
		return wrong("name "+strconv.Quote(short(name))+" stands twice"+differing(name, other), "")
	}
	if c.check != nil {
		if want := c.check(value); want != "" {
			return wrong("name "+strconv.Quote(short(name))+": wants "+want+", not "+strconv.Quote(short(value)), "")
		}
	}
	c.all[name], c.kept[c.one(name)] = value, name
	return nil
}

// one returns what is the same for names that are one.
func (s setting) one(name string) string {
	if s.fold == nil {
		return name
	}
	return s.fold(name)
}

func differing(name, other string) string {
	if name == other {
		return ""
	}
	return " (also as " + strconv.Quote(short(other)) + ")"
}

// text shows a decoded value on one line.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case time.Duration:
		return FormatDuration(v)
	case Size:
		return v.String()
	case Secret:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return plainNumber(v)
	case []string:
		return strings.Join(v, ",")
	case []int:
		parts := make([]string, len(v))
		for i, n := range v {
			parts[i] = strconv.Itoa(n)
		}
		return strings.Join(parts, ",")
	default:
		return jsonText(plain(v))
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
	case time.Duration, Size, Secret:
		return text(v)
	case []string:
		return list(v, func(s string) any { return s })
	case []int:
		return list(v, func(n int) any { return n })
	case []Match:
		return list(v, func(m Match) any { return m.plain() })
	case []Absent:
		return list(v, func(a Absent) any { return a.plain() })
	case Scheme:
		return v.plain()
	case names:
		all := map[string]any{}
		for name, value := range v {
			all[name] = value
		}
		return all
	case schemes:
		all := map[string]any{}
		for name, value := range v {
			all[name] = value.plain()
		}
		return all
	default:
		return v
	}
}

func list[T any](items []T, plain func(T) any) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = plain(item)
	}
	return all
}
