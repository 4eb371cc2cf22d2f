package events

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadLineIsBounded(t *testing.T) {
	const limit = 40
	text := strings.Repeat("a", limit) + "\n" + strings.Repeat("b", limit+1) + "\nc\r\n\n" + strings.Repeat("d", 5*limit) + "\n" + strings.Repeat("e", limit+1)
	r := bufio.NewReaderSize(strings.NewReader(text), 16)
	for i, want := range []struct {
		line string
		err  error
	}{{strings.Repeat("a", limit), nil}, {"{", errLongLine}, {"c\r", nil}, {"", nil}, {"{", errLongLine}, {"{", errLongLine}, {"", io.EOF}} {
		line, err := readLine(r, limit)
		if string(line) != want.line || !errors.Is(err, want.err) {
			t.Errorf("line %d: %q, %v; want %q, %v", i+1, line, err, want.line, want.err)
		}
	}
}
