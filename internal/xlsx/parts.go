package xlsx

import (
	"archive/zip"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Limits of the archive, against small files that unpack to huge ones.
const (
	maxEntries   = 10_000
	maxDirectory = 8 << 20  // bytes read to find the parts
	maxPart      = 8 << 30  // bytes of one sheet, unpacked
	maxList      = 32 << 20 // bytes of a part held in memory, such as the styles, unpacked
	maxStrings   = 1 << 30  // bytes of the shared strings, unpacked
	maxRatio     = 300      // of a part's size to its packed size
	freeOfRatio  = 16 << 20 // bytes of a part below which its ratio is ignored
)

// limitedAt reads at most left bytes while it is armed.
type limitedAt struct {
	r     io.ReaderAt
	left  int64
	armed bool
}

// ReadAt implements [io.ReaderAt].
func (l *limitedAt) ReadAt(p []byte, at int64) (int, error) {
	if l.armed {
		if l.left -= int64(len(p)); l.left < 0 {
			return 0, broken("", "it has too many parts", hintForeign)
		}
	}
	return l.r.ReadAt(p, at)
}

// archive maps names, see partName, to the files of the workbook.
type archive map[string]*zip.File

func openArchive(r io.ReaderAt, size int64) (archive, error) {
	limited := &limitedAt{r: r, left: maxDirectory, armed: true}
	z, err := zip.NewReader(limited, size)
	limited.armed = false
	if err != nil {
		return nil, partError("", err)
	}
	if len(z.File) > maxEntries {
		return nil, broken("", fmt.Sprintf("it has %d parts", len(z.File)), hintForeign)
	}
	a := make(archive, len(z.File))
	for _, f := range z.File {
		name := partName(f.Name)
		if a[name] != nil {
			return nil, broken(f.Name, "the part is there twice", hintForeign)
		}
		a[name] = f
	}
	return a, nil
}

// partName returns the name by which a part is found: in lower case, with slashes for backslashes.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/"))
}

func (a archive) open(name string, limit int64) (io.ReadCloser, error) {
	f := a[partName(name)]
	if f == nil {
		return nil, broken(name, "the part is missing", hintSaveAgain)
	}
	if f.Flags&1 != 0 {
		return nil, &Error{Kind: Protected, Message: "its parts are encrypted", hint: hintProtected}
	}
	if f.UncompressedSize64 > uint64(limit) {
		return nil, broken(name, fmt.Sprintf("the part is larger than %d MiB", limit>>20), hintForeign)
	}
	r, err := f.Open()
	if err != nil {
		return nil, partError(name, err)
	}
	return &part{ReadCloser: r, name: name, left: limit, packed: int64(f.CompressedSize64)}, nil
}

type part struct {
	io.ReadCloser
	name   string
	left   int64
	read   int64
	packed int64
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.read += int64(n)
	switch {
	case p.read > p.left:
		return 0, broken(p.name, fmt.Sprintf("the part is larger than %d MiB", p.left>>20), hintForeign)
	case p.read > freeOfRatio && p.read/maxRatio > p.packed:
		message := fmt.Sprintf("the part becomes more than %d times larger when it is unpacked", maxRatio)
		return 0, broken(p.name, message, hintForeign)
	case err != nil && !errors.Is(err, io.EOF):
		err = partError(p.name, err)
	}
	return n, err
}

// partError converts an error of reading a part to an [*Error]. Disk errors, io.EOF and nil are returned unchanged.
func partError(name string, err error) error {
	var corrupt flate.CorruptInputError
	var syntax syntaxError
	var known *Error
	var disk *fs.PathError
	switch {
	case errors.As(err, &known), errors.As(err, &disk):
		return err
	case errors.As(err, &syntax):
		return broken(name, string(syntax), hintSaveAgain)
	case errors.Is(err, zip.ErrAlgorithm):
		return broken(name, "the part is packed in a way that is not supported", hintSaveAgain)
	case errors.As(err, &corrupt), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrFormat):
		return broken(name, "it is damaged or cut off", hintCut)
	}
	return err
}

// refuseContainer returns the error for an OLE container. Its first directory sector names its streams in UTF-16.
func refuseContainer(r io.ReaderAt) error {
	head := make([]byte, 512)
	if _, err := r.ReadAt(head, 0); err != nil {
		return partError("", io.ErrUnexpectedEOF)
	}
	shift, first := binary.LittleEndian.Uint16(head[30:]), binary.LittleEndian.Uint32(head[48:])
	directory := make([]byte, 4096)
	n, err := r.ReadAt(directory, (int64(first)+1)<<min(shift, 12))
	if err != nil && !errors.Is(err, io.EOF) {
		return partError("", err)
	}
	has := func(stream string) bool {
		return strings.Contains(string(directory[:n]), strings.Join(strings.Split(stream, ""), "\x00")+"\x00")
	}
	switch {
	case has("EncryptedPackage"):
		return &Error{Kind: Protected, Message: "it is protected by a password", hint: hintProtected}
	case has("Workbook"), has("Book"):
		return foreign("an old Excel workbook (xls)", hintResave)
	}
	return foreign("an old Office document", hintResave)
}
