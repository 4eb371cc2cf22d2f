package intake

import (
	"cmp"
	"slices"
	"strings"
)

// carriers turns cells into carrier codes and counts the names that have none.
type carriers struct {
	codes     map[string]string   // by name, in the form of nameKey
	names     map[string]*carrier // by cell, as read
	uncounted int64               // rows with names that were not taken into names
}

// carrier is the result for one spelling of a name.
type carrier struct {
	code     string
	unmapped bool  // no code is known
	rows     int64 // rows in which it was left out
}

// nameKey brings a carrier's name into the form in which names are compared.
func nameKey(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func newCarriers(given map[string]string) (*carriers, error) {
	c := &carriers{codes: make(map[string]string, len(given)), names: map[string]*carrier{}}
	for name, code := range given {
		key, code := nameKey(name), strings.TrimSpace(code)
		if other, ok := c.codes[key]; ok && other != code {
			return nil, &OptionError{
				Option: "--carrier-map", Value: strings.TrimSpace(name), Reason: "the name has two codes",
				hint: "names are compared without case and outer spaces: give each one code",
			}
		}
		c.codes[key] = code
	}
	return c, nil
}

// code returns the code for a cell that holds a name, or "" if there is none.
func (c *carriers) code(name []byte) string {
	if len(name) == 0 {
		return ""
	}
	known, ok := c.names[string(name)]
	if !ok {
		known = &carrier{}
		var found bool
		known.code, found = c.codes[nameKey(string(name))]
		known.unmapped = !found
		if len(c.names) >= MaxCarriers {
			if known.unmapped {
				c.uncounted++
			}
			return known.code
		}
		c.names[string(name)] = known
	}
	if known.unmapped {
		known.rows++
	}
	return known.code
}

// intern returns code as a string, the same one for the same code as far as
// there are not many.
func (c *carriers) intern(code []byte) string {
	if len(code) == 0 {
		return ""
	}
	if known, ok := c.names[string(code)]; ok {
		return known.code
	}
	s := string(code)
	if len(c.names) < MaxCarriers {
		c.names[s] = &carrier{code: s}
	}
	return s
}

// leftOut returns the names without a code, most rows first, and how many rows
// had further ones.
func (c *carriers) leftOut() ([]Carrier, int64) {
	var names []Carrier
	for name, known := range c.names {
		if known.unmapped {
			names = append(names, Carrier{Name: name, Rows: known.rows})
		}
	}
	slices.SortFunc(names, func(a, b Carrier) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), strings.Compare(a.Name, b.Name))
	})
	return names, c.uncounted
}
