package webhook

// Reason says in one word why a delivery did not verify. Empty if it did.
type Reason string

// The reasons.
const (
	ReasonSignatureMissing   Reason = "signature_missing"   // no signature where the scheme says one stands
	ReasonSignatureMalformed Reason = "signature_malformed" // not in the form of the scheme, empty, or cut
	ReasonSignatureMismatch  Reason = "signature_mismatch"  // no secret makes it: forged, altered, or another secret
	ReasonHeaderRepeated     Reason = "header_repeated"     // the signature, or a part that is signed, stands there twice
	ReasonTimestampMissing   Reason = "timestamp_missing"
	ReasonTimestampMalformed Reason = "timestamp_malformed"
	ReasonTimestampTooOld    Reason = "timestamp_too_old"   // authentic, but older than the tolerance
	ReasonTimestampInFuture  Reason = "timestamp_in_future" // authentic, but further ahead than the tolerance
	ReasonBodyEmpty          Reason = "body_empty"
	ReasonSignedPartMissing  Reason = "signed_part_missing" // a header, parameter or member that is signed is not there
)

// WellFormed reports whether the delivery had a signature in the form of the
// scheme, and all that is signed.
func (r Reason) WellFormed() bool {
	switch r {
	case ReasonSignatureMismatch, ReasonTimestampMalformed, ReasonTimestampTooOld, ReasonTimestampInFuture:
		return true
	default:
		return false
	}
}
