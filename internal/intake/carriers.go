package intake

import (
	"cmp"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// carriers turns cells into carrier codes and counts the names that have none.
type carriers struct {
	codes     map[string]string   // by name, as nameKey returns it
	names     map[string]*carrier // by cell, as read
	goodCodes map[string]bool     // codes already checked; the number next to a code makes no difference
	uncounted int64               // rows with names that no longer fit into names
}

// carrier is the result for one spelling of a name.
type carrier struct {
	name     string
	code     string
	unmapped bool  // no code is known
	rows     int64 // rows in which the name was not used
}

func nameKey(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func newCarriers(o Options) *carriers {
	c := &carriers{names: map[string]*carrier{}, goodCodes: map[string]bool{}}
	c.codes = make(map[string]string, len(o.Carriers))
	for name, code := range o.Carriers {
		c.codes[nameKey(name)] = strings.TrimSpace(code)
	}
	return c
}

// code returns the code for a cell with a carrier name, or "" if it has none, and the name.
func (c *carriers) code(cell []byte) (code, name string) {
	if len(cell) == 0 {
		return "", ""
	}
	known, ok := c.names[string(cell)]
	if !ok {
		known = &carrier{name: string(cell)}
		var found bool
		known.code, found = c.codes[nameKey(known.name)]
		known.unmapped = !found
		if len(c.names) < MaxCarriers {
			c.names[known.name] = known
		} else if known.unmapped {
			c.uncounted++
		}
	}
	if known.unmapped {
		known.rows++
	}
	return known.code, known.name
}

// fromCode returns the code in a cell of codes, or the mapped code if the cell has a known carrier name instead.
func (c *carriers) fromCode(cell []byte) string {
	if len(cell) == 0 {
		return ""
	}
	known, ok := c.names[string(cell)]
	if !ok {
		known = &carrier{code: string(cell)}
		if mapped, found := c.codes[nameKey(known.code)]; found && tracking.LikeCarrierName(known.code) {
			known.code = mapped
		}
		if len(c.names) < MaxCarriers {
			c.names[string(cell)] = known
		}
	}
	return known.code
}

// validate is [tracking.Item.Validate], but checks each good carrier code only once.
func (c *carriers) validate(it tracking.Item, r tracking.Rules) []tracking.Problem {
	code := it.CarrierCode
	if c.goodCodes[code] {
		it.CarrierCode = ""
		return it.Validate(r)
	}
	problems := it.Validate(r)
	if len(problems) == 0 && len(c.goodCodes) < MaxCarriers {
		c.goodCodes[code] = true
	}
	return problems
}

// leftOut returns the names without a code, most rows first, and how many rows had uncounted names.
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
