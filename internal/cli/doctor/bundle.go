package doctor

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

const readme = `This file was made by "waybill doctor --bundle" for those who help with waybill.
doctor.json is what doctor found: versions, addresses of the service, of listeners and
targets, paths of files, and which settings are set. Keys, secrets and passwords are
masked as ***, and the home folder is written as ~.
`

func checkBundle(path string) error {
	if path == command.StdinName {
		return command.Usagef("give --bundle FILE", "a ZIP file is not written to standard output")
	}
	return command.RefuseExisting(path)
}

// writeBundle writes what was found into a ZIP file that only the user can read.
func (x *examination) writeBundle(ctx context.Context, path string, all []finding) error {
	var found bytes.Buffer
	encoder := json.NewEncoder(&found)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	f, err := command.NewAtomicFile(ctx, path) // 0600
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := writeZIP(f, x.withoutSecrets(found.Bytes())); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := checkBundle(path); err != nil { // another program may have made it
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	x.call.IO.Note("Wrote %s; check the file before you send it", path)
	return nil
}

// withoutSecrets removes secrets and the home folder, whose name is often the user's.
func (x *examination) withoutSecrets(b []byte) []byte {
	b = x.call.Redactor().Bytes(b)
	quoted, err := json.Marshal(x.sources.Home)
	if home := bytes.Trim(quoted, `"`); err == nil && len(home) > 1 {
		b = bytes.ReplaceAll(b, home, []byte("~"))
	}
	return b
}

func writeZIP(w io.Writer, found []byte) error {
	z := zip.NewWriter(w)
	for _, file := range []struct {
		name string
		data []byte
	}{{"README.txt", []byte(readme)}, {"doctor.json", found}} {
		part, err := z.CreateHeader(&zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: time.Now()})
		if err == nil {
			_, err = part.Write(file.data)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}
