package config

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"github.com/waybill-cli/waybill/internal/disk"
)

// decide lays the layers over the defaults, lowest first, and decodes the result.
func (l *loader) decide(layers []layer) (Config, error) {
	c := Config{sameKey: l.sameKey, origins: map[string]Origin{}, lookup: l.lookup}
	var err error
	if c.key, err = findAPIKey(layers); err != nil {
		return Config{}, err
	}
	v := viper.New()
	saved := names{}
	for _, s := range table() {
		v.SetDefault(s.Key, s.preset)
	}
	for _, made := range layers {
		own, _ := made[mapsKey].v.(names)
		maps.Copy(saved, own)
	}
	for _, made := range layers {
		if err := c.apply(v, made, saved); err != nil {
			return Config{}, err
		}
		if named := made["statuses"]; named.origin.Level != FromProject {
			own, _ := named.v.(names)
			c.statuses = joinNames(settingOf("statuses"), c.statuses, own)
		}
	}
	if err := l.deriveValues(v, &c); err != nil {
		return Config{}, err
	}
	// The values have their types already: nothing is converted on the way.
	exactly := func(d *mapstructure.DecoderConfig) { d.WeaklyTypedInput, d.DecodeHook = false, nil }
	if err := v.Unmarshal(&c, exactly); err != nil {
		return Config{}, fmt.Errorf("decode settings: %w", err)
	}
	if err := c.refuseAuthorities(); err != nil {
		return Config{}, err
	}
	named := c.secretsAt("env:")
	c.hook, _ = v.Get("webhook.secret").(Secret)
	if c.key.setting != "" {
		v.Set(c.key.setting, c.key.v)
		c.origins[c.key.setting] = c.key.origin
	}
	c.entries = c.list(v)
	c.warnings = slices.Concat(l.ignored, l.warnings(named))
	o, others := c.origins["webhook.secret"], len(c.Webhook.Secrets) > 0
	if o.Level == FromEnv && others && !slices.Contains(named, o.Name) {
		c.warnings = append(c.warnings, "environment variable "+o.Name+" is ignored: webhook.secrets names other secrets")
	}
	return c, nil
}

// refuseAuthorities refuses a file of authorities, if there, that others may change: they decide who reads the key.
func (c *Config) refuseAuthorities() error {
	info, err := os.Stat(c.CAFile)
	if c.CAFile == "" || err != nil {
		return nil //nolint:nilerr // see above
	}
	err = refuseChangers(c.CAFile, disk.ChangersOf(c.CAFile, info))
	return at(in(c.CAFile, err), "ca_file", c.Origin("ca_file"))
}

func (l *loader) lookup(name string) (text string, isSet bool) {
	text, isSet = l.env[variable(name, runtime.GOOS)]
	return text, isSet
}

func (c *Config) apply(v *viper.Viper, made layer, saved names) error {
	for key, val := range made {
		if slices.Contains(apiKeySettings(), key) {
			continue // one of all layers counts, see findAPIKey
		}
		c.origins[key] = val.origin
		s := settingOf(key)
		if own, ok := val.v.(names); ok {
			own, err := expandMap(own, saved)
			if err != nil {
				return at(err, key, val.origin)
			}
			for name := range own {
				c.origins[key+"."+name] = val.origin
			}
			under, _ := v.Get(key).(names)
			val.v = joinNames(s, under, own)
		}
		v.Set(key, val.v)
	}
	return nil
}

func joinNames(s Setting, under, over names) names {
	taken := map[string]bool{}
	for name := range over {
		taken[s.foldedName(name)] = true
	}
	all := names{}
	maps.Copy(all, under)
	maps.DeleteFunc(all, func(name string, _ any) bool { return taken[s.foldedName(name)] })
	maps.Copy(all, over)
	return all
}

// mapsKey is the setting of saved mappings, savedMark what marks the name of one.
const (
	mapsKey   = "maps"
	savedMark = "@"
)

// expandMap replaces the name of a saved mapping by its fields. Fields given beside it count more.
func expandMap(own, saved names) (names, error) {
	name, ok := own[savedMark].(string)
	if !ok {
		return own, nil
	}
	mapping, ok := saved[name].(names)
	if !ok {
		known := slices.Sorted(maps.Keys(saved))
		hint := "save one with --map FIELD=HEADER --save-map NAME"
		if len(known) > 0 {
			hint = "saved: " + strings.Join(known, ", ")
		}
		return nil, wrong(didYouMean("no saved mapping "+savedMark+short(name), name, known), hint)
	}
	whole := maps.Clone(mapping)
	maps.Copy(whole, own)
	delete(whole, savedMark)
	return whole, nil
}

func (l *loader) deriveValues(v *viper.Viper, c *Config) error {
	if raw := v.GetString("base_url"); raw != "" {
		normal, err := normalizeURL(raw)
		if err == nil && !v.GetBool("insecure_http") {
			err = checkEncrypted(normal)
		}
		if err != nil {
			return at(err, "base_url", c.origins["base_url"])
		}
		v.Set("base_url", normal)
	}
	verify := "observe"
	if v.GetString("webhook.scheme") != "" {
		verify = "enforce"
	}
	for key, derived := range map[string]string{
		"account":        v.GetString("base_url"),
		"store":          storeDefault(runtime.GOOS, l.env, l.src.Home, v.GetString("profile")),
		"webhook.verify": verify,
	} {
		if v.GetString(key) == "" {
			v.Set(key, derived)
			delete(c.origins, key)
		}
	}
	return nil
}
