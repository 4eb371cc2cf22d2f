package intake

import (
	"cmp"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// carriers turns cells into carrier codes and counts the names that have none.
type carriers struct {
	codes     map[string]string   // by name, in the form of nameKey
	names     map[string]*carrier // by cell, as read
	uncounted int64               // rows with names that were not taken into names
	acceptOdd bool                // see [Options]
}

// carrier is the result for one spelling of a name.
type carrier struct {
	code     string
	unmapped bool  // no code is known
	rows     int64 // rows in which it was left out, or stands where a code should

	problem *tracking.Problem // it stands where a code should; nil if not
}

// nameKey brings a carrier's name into the form in which names are compared.
func nameKey(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func newCarriers(o Options) (*carriers, error) {
	c := &carriers{codes: make(map[string]string, len(o.Carriers)), names: map[string]*carrier{}, acceptOdd: o.AcceptOdd}
	for name, code := range o.Carriers {
		key, code := nameKey(name), strings.TrimSpace(code)
		if other, ok := c.codes[key]; ok && other != code {
			return nil, &OptionError{
				Option: "--carrier-map", Value: strings.TrimSpace(name), Reason: "this name has two codes",
				hint: "names are compared without case and outer spaces; give each name one code",
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

// fromCode returns the code that a cell of codes holds. What is plainly a name stands for its code,
// see [tracking.CarrierName]; it is a problem if none is known.
func (c *carriers) fromCode(cell []byte) (code string, problem *tracking.Problem) {
	if len(cell) == 0 {
		return "", nil
	}
	known, ok := c.names[string(cell)]
	if !ok {
		known = &carrier{code: string(cell)}
		if p, isName := tracking.CarrierName(known.code, c.acceptOdd); isName {
			if mapped, found := c.codes[nameKey(known.code)]; found {
				known.code = mapped
			} else {
				known.problem = &p
			}
		}
		if len(c.names) < MaxCarriers {
			c.names[string(cell)] = known
		}
	}
	if known.problem != nil {
		known.rows++
	}
	return known.code, known.problem
}

// CarrierCode returns what a carrier code stands for, and its problem if it is
// plainly a name without a code in [Options.Carriers].
func (o Options) CarrierCode(code string) (string, *tracking.Problem, error) {
	c, err := newCarriers(o)
	if err != nil {
		return "", nil, err
	}
	code, problem := c.fromCode([]byte(code))
	return code, problem, nil
}

// leftOut returns the names without a code, most rows first, and how many rows had further ones.
func (c *carriers) leftOut() ([]Carrier, int64) {
	return c.list(func(k *carrier) bool { return k.unmapped }), c.uncounted
}

// asCodes returns the names that stand where codes should, most rows first.
func (c *carriers) asCodes() []Carrier {
	return c.list(func(k *carrier) bool { return k.problem != nil && !k.problem.Note })
}

func (c *carriers) list(match func(*carrier) bool) []Carrier {
	var names []Carrier
	for name, known := range c.names {
		if match(known) {
			names = append(names, Carrier{Name: name, Rows: known.rows})
		}
	}
	slices.SortFunc(names, func(a, b Carrier) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), strings.Compare(a.Name, b.Name))
	})
	return names
}
