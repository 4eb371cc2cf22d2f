package render

import "github.com/waybill-cli/waybill/internal/term"

// maxBuffered is how many bytes wait at most before they are written.
const maxBuffered = 64 << 10

type sink struct {
	out    *term.Writer
	styled bool // what is written holds styles
	live   bool // nothing waits
	buf    []byte
}

// ended is called when an element is whole in the buffer.
func (s *sink) ended() error {
	if s.live || len(s.buf) >= maxBuffered {
		return s.flush()
	}
	return nil
}

func (s *sink) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	write := s.out.Write
	if s.styled {
		write = s.out.WriteStyled
	}
	_, err := write(s.buf)
	s.buf = s.buf[:0]
	return err
}
