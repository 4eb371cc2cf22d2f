package create

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// suspicion finds out whether rows of an input may contradict each other: the
// same tracking with another carrier code. It keeps two hashes of each row. So rows
// that contradict each other are always suspected, and others nearly never; only the
// ledger compares the rows.
type suspicion struct {
	refer, number, carrier maphash.Seed

	hashes disk.Spill // of trackings, each followed by the hash of its carrier code
	first  uint64     // carrier code
	mixed  bool       // there is more than one carrier code
	any    bool
}

// hashSize is how many bytes a hash has.
const hashSize = 8

func newSuspicion() *suspicion {
	return &suspicion{refer: maphash.MakeSeed(), number: maphash.MakeSeed(), carrier: maphash.MakeSeed()}
}

// add takes a row.
func (s *suspicion) add(item tracking.Item) error {
	key := maphash.String(s.refer, item.ReferID) ^ maphash.String(s.number, item.Number)
	carrier := maphash.String(s.carrier, item.CarrierCode)
	if !s.any {
		s.any, s.first = true, carrier
	}
	s.mixed = s.mixed || carrier != s.first
	var record [2 * hashSize]byte
	binary.LittleEndian.PutUint64(record[:], key)
	binary.LittleEndian.PutUint64(record[hashSize:], carrier)
	if err := s.hashes.Add(key, record[:]...); err != nil {
		return fmt.Errorf("compare the rows: %w", err)
	}
	return nil
}

// founded reports whether some rows may contradict each other.
func (s *suspicion) founded() (found bool, err error) {
	if !s.mixed {
		return false, nil
	}
	carriers := map[uint64]uint64{} // by tracking
	err = s.hashes.Parts(func(all []byte) error {
		clear(carriers)
		for ; len(all) > 0; all = all[2*hashSize:] {
			key, carrier := binary.LittleEndian.Uint64(all), binary.LittleEndian.Uint64(all[hashSize:])
			other, known := carriers[key]
			found = found || known && other != carrier
			carriers[key] = carrier
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("compare the rows: %w", err)
	}
	return found, nil
}

func (s *suspicion) close() { s.hashes.Close() }
