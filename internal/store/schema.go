package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// SchemaVersion is the version of the tables that this program works with.
const SchemaVersion = 1

// SchemaDigest returns a number that tells the text of a schema from others. A store keeps
// it as the counter 'schema': builds between releases change the tables without giving them
// a version.
func SchemaDigest(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// CheckSchema returns nil if a store of that version and digest, 0 for none, has the tables
// of this program's schema; else [ErrTooNew] or [ErrDevelopment] in an [*Error].
func CheckSchema(place string, version int, digest int64, schema string) error {
	switch {
	case digest != 0 && version > SchemaVersion:
		return &Error{Kind: ErrTooNew, Path: place, Op: "open", Err: BeyondNewest(version)}
	case digest != SchemaDigest(schema):
		return &Error{Kind: ErrDevelopment, Path: place, Op: "open"}
	}
	return nil
}

// BeyondNewest says that a newer program made the store, or has changed it.
func BeyondNewest(version int) error {
	return fmt.Errorf("version %d, this waybill supports up to %d", version, SchemaVersion)
}
