package create

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"os"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Sizes of what is kept of the rows until all were judged.
const (
	hashParts    = 256
	hashesAtOnce = 256 // of a part that are held
	hashSize     = 16  // bytes: of the tracking, and of its carrier code
)

// suspicion finds out whether rows of an input may contradict each other: the
// same tracking with another carrier code. It keeps two hashes of each row, in a
// file once there are many. So rows that contradict each other are always
// suspected, and others nearly never; only the ledger compares the rows.
type suspicion struct {
	refer, number, carrier maphash.Seed

	parts [hashParts]hashPart // by the hash of the tracking
	file  *os.File            // nil while all are held
	end   int64
	first uint64 // carrier code
	mixed bool   // there is more than one carrier code
	any   bool
}

// hashPart are the hashes of a part: those that are held, and where the others
// are in the file.
type hashPart struct {
	held   []byte
	blocks []int64
}

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
	p := &s.parts[key%hashParts]
	if len(p.held) == hashesAtOnce*hashSize {
		if err := s.write(p); err != nil {
			return fmt.Errorf("compare the rows: %w", err)
		}
	}
	p.held = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(p.held, key), carrier)
	return nil
}

// write moves the hashes that are held to the file.
func (s *suspicion) write(p *hashPart) error {
	if s.file == nil {
		f, err := disk.Temp()
		if err != nil {
			return err
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(p.held, s.end); err != nil {
		return err
	}
	p.blocks = append(p.blocks, s.end)
	s.end += int64(len(p.held))
	p.held = p.held[:0]
	return nil
}

// founded reports whether some rows may contradict each other.
func (s *suspicion) founded() (bool, error) {
	if !s.mixed {
		return false, nil
	}
	var table hashTable
	for i := range s.parts {
		p := &s.parts[i]
		all := make([]byte, 0, len(p.blocks)*hashesAtOnce*hashSize+len(p.held))
		for _, at := range p.blocks {
			from := len(all)
			all = all[:from+hashesAtOnce*hashSize]
			if _, err := s.file.ReadAt(all[from:], at); err != nil && err != io.EOF {
				return false, fmt.Errorf("compare the rows: %w", err)
			}
		}
		if table.contradicts(append(all, p.held...)) {
			return true, nil
		}
	}
	return false, nil
}

func (s *suspicion) close() {
	if s.file != nil {
		_ = s.file.Close() // nobody reads it again
	}
}

// hashTable finds equal trackings among hashes.
type hashTable []struct {
	key, carrier uint64
	used         bool
}

// contradicts reports whether a tracking has two carriers.
func (t *hashTable) contradicts(hashes []byte) bool {
	size := 1
	for size < 2*len(hashes)/hashSize {
		size *= 2
	}
	if size > len(*t) {
		*t = make(hashTable, size)
	} else {
		clear(*t)
	}
	slots := *t
	mask := uint64(len(slots) - 1)
	for ; len(hashes) >= hashSize; hashes = hashes[hashSize:] {
		key, carrier := binary.LittleEndian.Uint64(hashes), binary.LittleEndian.Uint64(hashes[8:])
		i := key / hashParts & mask
		for slots[i].used && slots[i].key != key {
			i = (i + 1) & mask
		}
		if slots[i].used && slots[i].carrier != carrier {
			return true
		}
		slots[i].key, slots[i].carrier, slots[i].used = key, carrier, true
	}
	return false
}
