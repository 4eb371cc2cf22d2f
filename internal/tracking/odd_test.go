package tracking_test

import (
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// genuine are numbers in the forms that carriers give, and some that only look like something else.
var genuine = []string{
	"1Z999AA10123456784", "1Z12345E0205271688", "1ZE12E456678901234", "T1234567890", "123456789", "MI123456789012345678901", // UPS
	"94001118992231234567", "9400111899223197428490", "9205590164917312751089", "420941079400111899223197428490", "EA123456789US", "82000000000", // USPS
	"123456789012", "123456789012345", "61299998820821171811", "9612019012345678901234", "028240587935", // FedEx
	"1234567890", "3520831543", "JJD000390007000000000", "JJD0099999999", "JVGL0123456789012345", "GM60511234500000001", "00340434161094022115", "LX123456789DE", "420123459261299998765432101234", // DHL
	"RR123456785CN", "CP245915106DE", "LZ618655169JP", "UA938024543UA", // S10
	"TBA123456789000", "LP00123456789012", "4PX3000123456789CN", "YT2212345678901234", "SF1234567890123", "SPXID012345678901", "H00E4A0012345678", // others by name
	"ZKRUXGTA", "ZL1E2345", "1234E567", "12345E67", "00AB1CDE", "MAR12345", "DEC24ABC", // eight letters and digits: GLS
	"05222345678901E", "1550 5000", "15505000000000", // DPD
	"020-12345678", "99.60.123456.12345678", "996012345612345678", "1234-5678-9012", "123-456789-0", "6A12345678901", "8R12345678901", "CJ123456789US", // air waybill, Swiss Post, grouped
	"56.310.243.031.3", "20240301", "31122024", "00000000000000000001", "12E34567", "D10012345678901", "1E2345678", "TRUE1234", "NULL0001", "NA123456789BR", "TEST-0001", "TBD00012345",
	"1000", "N1", "1Z1", "AB12",
}

func TestGenuineNumbersAreGood(t *testing.T) {
	for _, number := range genuine {
		number = strings.ReplaceAll(number, " ", "")
		for _, s := range []string{number, strings.ToLower(number)} {
			for _, p := range (tracking.Item{ReferID: s, Number: s}).Validate(tracking.Rules{}) {
				t.Errorf("%s: %+v", s, p)
			}
		}
	}
}

// What is refused as a number, and what the same is as a referId: good, a note or refused too.
func TestOddValues(t *testing.T) {
	for _, group := range []struct {
		referID string
		values  []string
	}{
		{"refused", []string{
			"9.4e21", "9.4E21", "9.4001E21", "9.4001E+21", "9,4E+21", "9,4001e21", "94E+20", "9.4e-5", "+9.4E21", "9.E+21", "9'400.1E+21", "9.4×10^21", "9.4x10^21",
			"########", "##", "#REF!", "#N/A", "#n/a", "#VALUE!", "#NAME?", "#DIV/0!", "#NV", "#WERT!", "#BEZUG!", "#VALEUR!", "#NOM?", "#¡REF!", "#¿NOMBRE?", "#N/D", "#ARG!", "#ЗНАЧ!", "#SPILL!", "Err:502", "#GETTING_DATA",
			"N/A", "n/a", "nan", "NaN", "NULL", "null", "(null)", "<null>", `\N/A`, "undefined", "N/D",
			"-", "--", "---", "?", "??", ".", "...", "*", "/", "—", "–", "_", "'", "#", "()",
			"9400111899223190000000", "123456789012345000",
		}},
		{"note", []string{
			"12345678901234.0", "12345678901234,0", "12345678901234.00", "86,59", "12.5", ".5", "123.", "-1.0",
			"1,234,567,890,123", "1.234.567", "1.234.567.890", "1'234'567", "12,34,567", "1,234,567.00", "1.234.567,89", "-1,234",
			"'0012", "'1Z999AA10123456784", "’0012", "=A1", `="0012"`, "=1+1",
			"Mar-24", "24-Mar", "MAR-24", "Mär-24", "24-Mai", "Okt-24", "mars-24", "févr-24", "24-Mar-24", "24-Mar-2024", "March-24", "Mar/24", "1.Mrz",
			"2024-03-01", "2024/03/01", "01.03.2024", "1.3.24", "3/1/2024", "03/01/24", "3-1-24", "12-31-2024", "2024-03", "03/2024", "2024-03-01T00:00:00", "2024-03-01T12:30:00Z", "12:30", "12:30:00", "2024-03-0112:30:00", "2024年3月1日",
			"None", "none", "TRUE", "true", "FALSE", "WAHR", "TBD", "T.B.D.", "tba", "pending", "Pending...", "<pending>", "[none]", "unknown", "n.a.", "NA", "nil", "to-be-determined", "not_available", "unbekannt", "Total", "TOTAL:", "Summe", "xxx", "XXXXXX", "shipped", "test",
		}},
		{"good", []string{"123E4", "1e5", "12E456", "0", "000", "0000000000", "7", "12", "123"}},
	} {
		for _, s := range group.values {
			number := (tracking.Item{ReferID: "ORD-100001", Number: s}).Validate(tracking.Rules{})
			if len(number) != 1 || number[0].Note || number[0].Field != tracking.FieldNumber || !strings.Contains(number[0].Hint, "--accept-odd-values") {
				t.Errorf("number %s: %+v; want one problem with --accept-odd-values", s, number)
			}
			for _, p := range (tracking.Item{ReferID: "ORD-100001", Number: s}).Validate(tracking.Rules{AcceptOdd: true}) {
				if !p.Note {
					t.Errorf("number %s, accepted: %+v", s, p)
				}
			}
			got := "good"
			for _, p := range (tracking.Item{ReferID: s, Number: "1Z999AA10123456784"}).Validate(tracking.Rules{}) {
				if got = "refused"; p.Note {
					got = "note"
				}
			}
			if got != group.referID {
				t.Errorf("referId %s is %s, want %s", s, got, group.referID)
			}
		}
	}
}

// A number that ends in zeros was not rounded if its check digit fits.
func TestZerosBeforeTheRightCheckDigitAreGood(t *testing.T) {
	for _, number := range []string{
		"1234567890120000", // Canada Post
		"340069458073021000", "00340063642621290000", "9405582357416290000000",
	} {
		for _, p := range (tracking.Item{ReferID: number, Number: number}).Validate(tracking.Rules{}) {
			t.Errorf("%s: %+v", number, p)
		}
	}
}

func TestMarkBeforeAnXIsNoPlaceholder(t *testing.T) {
	for _, s := range []string{"-x", "x-", "+X"} {
		if ps := (tracking.Item{ReferID: s, Number: "1Z999AA10123456784"}).Validate(tracking.Rules{}); len(ps) != 0 {
			t.Errorf("%s: %+v", s, ps)
		}
	}
}

func TestLongIdentifiers(t *testing.T) {
	long := strings.Repeat("ä1", 128)
	for _, it := range []tracking.Item{
		{ReferID: "A1", Number: long},
		{ReferID: long, Number: "1Z999AA10123456784"},
		{ReferID: "A1", Number: strings.Repeat("1Z", 1<<19)},
	} {
		if ps := it.Validate(tracking.Rules{}); len(ps) != 1 || !strings.Contains(ps[0].Message, "longer than 255 characters") {
			t.Errorf("problems %d, %.200v", len(ps), ps)
		}
	}
	it := tracking.Item{ReferID: long[:len(long)-1], Number: strings.Repeat("A1", 127) + "A"}
	if ps := it.Validate(tracking.Rules{}); len(ps) != 0 {
		t.Errorf("255 characters: %+v", ps)
	}
}

// What an item can't do without is no oddity to be accepted.
func TestAcceptOddSendsNothingEmpty(t *testing.T) {
	for _, it := range []tracking.Item{
		{ReferID: "Total"}, {ReferID: "N/A"}, {Number: "N/A"}, {ReferID: "A1", Number: "N A"}, {ReferID: "A1", Number: "\x1b"}, {ReferID: "A1", Number: "\xff"},
	} {
		refused := false
		for _, p := range it.Validate(tracking.Rules{AcceptOdd: true}) {
			refused = refused || !p.Note
		}
		if !refused {
			t.Errorf("%+v is good with odd values accepted", it)
		}
	}
}
