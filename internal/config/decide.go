package config

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// delimiter parts the levels of a viper key. A dot would split more than it should.
const delimiter = "::"

func viperKey(key string) string { return strings.ReplaceAll(key, ".", delimiter) }

// decide lays the layers over the defaults, lowest first, and decodes what
// comes out.
func (l *loader) decide(layers []layer) (Config, error) {
	c := Config{origins: map[string]Origin{}}
	if fault := l.expandMaps(layers); fault != nil {
		return Config{}, fault
	}
	var err error
	if c.key, err = findAPIKey(layers); err != nil {
		return Config{}, err
	}
	v := viper.NewWithOptions(viper.KeyDelimiter(delimiter))
	for _, s := range l.table {
		if !s.apart() {
			v.SetDefault(viperKey(s.Key), s.preset)
		}
	}
	for _, made := range layers {
		for key, val := range made {
			c.origins[key] = val.origin
		}
		l.applyLayer(v, made, c.origins)
	}
	if err := l.deriveValues(v, &c); err != nil {
		return Config{}, err
	}
	// The values have their types already: nothing is converted on the way.
	exactly := func(d *mapstructure.DecoderConfig) { d.WeaklyTypedInput, d.DecodeHook = false, nil }
	if err := v.UnmarshalExact(&c, exactly); err != nil {
		return Config{}, fmt.Errorf("decode settings: %w", err)
	}
	c.webhook = l.webhookSecrets(layers, c.Webhook.Secrets)
	for _, key := range apiKeySettings() {
		c.origins[key] = Origin{}
	}
	c.origins[c.key.setting()] = c.key.origin
	c.entries = l.entries(v, c)
	c.warnings = l.warnings(namesOf(c.Webhook.Secrets))
	return c, nil
}

// apart reports whether the setting is kept out of viper: all that leads to a
// secret is decided by itself.
func (s Setting) apart() bool { return s.Secret || slices.Contains(apiKeySettings(), s.Key) }

// applyLayer puts the values of a layer over those of the layers below it.
func (l *loader) applyLayer(v *viper.Viper, made layer, origins map[string]Origin) {
	for key, val := range made {
		if s := l.find(key); !s.apart() {
			v.Set(viperKey(key), joinNames(s, v.Get(viperKey(key)), val, origins))
		}
	}
}

// joinNames lays the names of val over those below and notes the origin of
// each, under the key and the name; any other value replaces what is below.
func joinNames(s Setting, below any, val value, origins map[string]Origin) any {
	switch over := val.v.(type) {
	case names:
		under, _ := below.(names)
		all, kept := maps.Clone(under), map[string]string{}
		for name := range under {
			kept[s.foldedName(name)] = name
		}
		for name, text := range over {
			delete(all, kept[s.foldedName(name)])
			all[name] = text
			origins[s.Key+"."+name] = val.origin
		}
		return all
	case mappings:
		under, _ := below.(mappings)
		all := maps.Clone(under)
		for name, mapping := range over {
			all[name] = mapping
			origins[s.Key+"."+name] = val.origin
		}
		return all
	case schemes:
		under, _ := below.(schemes)
		all := maps.Clone(under)
		for name, scheme := range over {
			all[name] = scheme
			origins[s.Key+"."+name] = val.origin
		}
		return all
	}
	return val.v
}

// deriveValues replaces the values that follow from others.
func (l *loader) deriveValues(v *viper.Viper, c *Config) error {
	if raw := v.GetString("base_url"); raw != "" {
		normal, fault := normalizeURL(raw, v.GetBool("insecure_http"))
		if fault != nil {
			return fault.at("base_url", c.origins["base_url"])
		}
		v.Set("base_url", normal)
	}
	if v.GetString("account") == "" {
		v.Set("account", v.GetString("base_url"))
		delete(c.origins, "account")
	}
	if v.GetString("store") == "" {
		v.Set("store", storeDefault(runtime.GOOS, l.env, l.src.Home))
		delete(c.origins, "store")
	}
	verify := viperKey("webhook.verify")
	if v.GetString(verify) == "" {
		mode := "observe"
		if v.GetString(viperKey("webhook.scheme")) != "" {
			mode = "enforce"
		}
		v.Set(verify, mode)
	}
	return nil
}

// webhookSecrets keeps the literal of the highest layer that has one, and those
// variables that the places name.
func (l *loader) webhookSecrets(layers []layer, places []string) webhookSecrets {
	made := webhookSecrets{env: map[string]Secret{}}
	for _, below := range layers {
		if val, ok := below["webhook.secret"]; ok {
			made.literal, _ = val.v.(Secret)
			made.origin = val.origin
		}
	}
	for _, name := range namesOf(places) {
		if text, ok := l.env[variable(name, runtime.GOOS)]; ok {
			made.env[name] = NewSecret(text)
		}
	}
	return made
}

func namesOf(places []string) []string {
	var all []string
	for _, place := range places {
		if name, ok := strings.CutPrefix(place, "env:"); ok {
			all = append(all, name)
		}
	}
	return slices.Clip(all)
}
