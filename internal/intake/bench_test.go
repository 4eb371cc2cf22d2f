package intake_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/waybill-cli/waybill/internal/intake"
)

// orders returns a table, or JSON Lines, of n plain rows.
func orders(n int, line func(i int) string) []byte {
	var b bytes.Buffer
	for i := range n {
		b.WriteString(line(i))
	}
	return b.Bytes()
}

func csvLine(i int) string {
	if i == 0 {
		return "referId,rawTrackingNumber,carrierCode\n"
	}
	return fmt.Sprintf("ORD-%07d,94002956559136%08d1,usps\n", i, i)
}

func quotedLine(i int) string {
	if i == 0 {
		return "Order ID,Name,Tracking Number,Carrier\r\n"
	}
	return fmt.Sprintf("\"ORD-%07d\",\"O'Brien, \"\"Pat\"\"\",\"94002956559136%08d1\",\"USPS\"\r\n", i, i)
}

func jsonLine(i int) string {
	return fmt.Sprintf(`{"referId": "ORD-%07d", "rawTrackingNumber": "94002956559136%08d1", "metadata": {"carrierCode": "usps"}}`+"\n", i, i)
}

func drain(tb testing.TB, r io.Reader, o intake.Options) (rows int) {
	tb.Helper()
	in, err := intake.Open("bench", r, o)
	if err != nil {
		tb.Fatal(err)
	}
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil || !rec.Good() {
			tb.Fatalf("row %d: %v %v", rows, rec, err)
		}
		rows++
	}
}

func benchmark(b *testing.B, text []byte, want int) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if got := drain(b, bytes.NewReader(text), intake.Options{}); got != want {
			b.Fatalf("read %d rows, want %d", got, want)
		}
	}
	b.ReportMetric(float64(want)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkCSV(b *testing.B)   { benchmark(b, orders(200_001, csvLine), 200_000) }
func BenchmarkJSONL(b *testing.B) { benchmark(b, orders(100_000, jsonLine), 100_000) }

// generator gives the lines of a large input without holding it.
type generator struct {
	line func(i int) string
	next int
	n    int
	rest string
}

func (g *generator) Read(p []byte) (int, error) {
	if g.rest == "" {
		if g.next == g.n {
			return 0, io.EOF
		}
		g.rest = g.line(g.next)
		g.next++
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// What is held does not grow with the number of rows.
func TestConstantMemory(t *testing.T) {
	const (
		rows  = 60_000
		limit = 2 << 20 // bytes
	)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, line := range map[string]func(int) string{"csv": csvLine, "quoted": quotedLine, "jsonl": jsonLine} {
		before := heap()
		in, err := intake.Open(name, &generator{line: line, n: rows}, intake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; err == nil; n++ {
			if n%(rows/4) == rows/8 {
				if now := heap(); now > before+limit {
					t.Errorf("%s: %d bytes are held after %d rows, want at most %d", name, now-before, n, limit)
				}
			}
			_, err = in.Next()
		}
		if !errors.Is(err, io.EOF) || n < rows {
			t.Errorf("%s: ended after %d rows with %v", name, n, err)
		}
	}
}

// A plain row costs one allocation, for its two identifiers.
func TestAllocations(t *testing.T) {
	const rows = 5000
	text := orders(rows+1, csvLine)
	all := testing.AllocsPerRun(5, func() { drain(t, bytes.NewReader(text), intake.Options{}) })
	if perRow := all / rows; perRow > 1.1 {
		t.Errorf("%.2f allocations a row, want 1", perRow)
	}
}
