package intake_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/intake"
)

// A fault of a sheet below its header is the workbook's, not the disk's.
func TestFaultBelowTheHeaderHasTheHintOfTheWorkbook(t *testing.T) {
	data := book{rows: [][]any{bookHead, {"ORD-1", "1Z999AA10123456784"}, {"ORD-2", "1Z999AA10123456784"}}}.pack(t)
	in, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range in.File {
		text, err := in.Open(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(text)
		if err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(f.Name)
		if err == nil {
			_, err = w.Write(bytes.ReplaceAll(part, []byte(`<row r="3"`), []byte(`<row r="2"`)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = readBook(out.Bytes(), intake.Options{})
	var hinted interface{ Hint() string }
	if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "save it again as XLSX") {
		t.Errorf("error %v; want the hint to save it again", err)
	}
}
