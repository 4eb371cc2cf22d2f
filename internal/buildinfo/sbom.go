package buildinfo

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"runtime/debug"
	"strings"
)

// SBOM is a software bill of materials in the form of CycloneDX 1.6. It has what the go
// command recorded in the binary, and nothing else: licences and the graph of
// dependencies are not recorded there.
type SBOM struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"` // of this document
	Metadata    Metadata    `json:"metadata"`
	Components  []Component `json:"components"`
}

// Metadata says what an [SBOM] is about.
type Metadata struct {
	Timestamp string    `json:"timestamp,omitempty"` // of the commit, RFC 3339 UTC, so that equal sources make equal documents
	Component Component `json:"component"`
}

// Component is the program, or a module that is linked into it.
type Component struct {
	Type       string     `json:"type"` // application, library
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"` // the module's path
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []Hash     `json:"hashes,omitempty"` // of the module's content, as in go.sum; none of the program and the standard library
	Properties []Property `json:"properties,omitempty"`
}

// Hash is a checksum in hexadecimal digits.
type Hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// Property is a fact that CycloneDX has no field for.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ReadSBOM returns the bill of materials of the running binary. It fails for a binary
// that was built without modules: such a one has no record.
func ReadSBOM() (SBOM, error) {
	recorded, ok := debug.ReadBuildInfo()
	if !ok {
		return SBOM{}, errors.New("the binary has no record of what it was built from: build it with modules (`make build`)")
	}
	return sbom(Read(), recorded)
}

func sbom(info Info, recorded *debug.BuildInfo) (SBOM, error) {
	program := component("application", recorded.Main.Path, info.Version)
	for _, p := range []Property{{"waybill:commit", info.Commit}, {"waybill:platform", info.Platform}} {
		if p.Value != "" {
			program.Properties = append(program.Properties, p)
		}
	}
	s := SBOM{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: Metadata{Timestamp: info.Date, Component: program}}
	s.Components = append(s.Components, component("library", "std", strings.TrimPrefix(info.Go, "go")))
	for _, m := range recorded.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component("library", m.Path, m.Version)
		if m.Sum != "" {
			hash, err := hashOf(m.Sum)
			if err != nil {
				return SBOM{}, errors.New("the record of " + m.Path + " has no checksum that can be read: " + m.Sum)
			}
			c.Hashes = []Hash{hash}
		}
		s.Components = append(s.Components, c)
	}
	return s, nil
}

// component names a module as package URLs do.
func component(kind, path, version string) Component {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = url.QueryEscape(s)
	}
	name := "pkg:golang/" + strings.Join(segments, "/")
	if version != "" {
		name += "@" + url.QueryEscape(version)
	}
	return Component{Type: kind, Ref: name, Name: path, Version: version, PURL: name}
}

// hashOf reads a checksum as go.sum has it: SHA-256 of the list of the module's files,
// in base64.
func hashOf(sum string) (Hash, error) {
	encoded, ok := strings.CutPrefix(sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(raw) != 32 {
		return Hash{}, errors.New("not a checksum")
	}
	return Hash{"SHA-256", hex.EncodeToString(raw)}, nil
}
