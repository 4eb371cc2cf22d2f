package doctor

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
)

func (x *examination) configuration(context.Context) []finding {
	var all []finding
	paths, err := config.Locate(x.call.Sources())
	if err == nil {
		err = x.broken
	}
	if err != nil {
		all = append(all, found(configBroken, "%v", err).hinted(command.HintOf(err)))
	}
	if paths.UserExists && err == nil {
		f := foundFile(paths.User)
		f.Message += ", profile " + x.call.Config.Profile
		all = append(all, f)
	}
	if paths.UserExists {
		switch who, chmod := config.Exposed(paths.User); {
		case who == "":
		case err != nil && all[0].Hint == chmod: // the permissions are why it is unusable
			all[0].Hint, all[0].NextCommand = "", chmod
		default:
			all = append(all, exposed(configReadable, paths.User, who, chmod))
		}
	}
	if paths.ProjectExists && err == nil {
		all = append(all, foundFile(paths.Project))
	}
	if err != nil {
		return all
	}
	c := x.call.Config
	switch {
	case paths.UserExists || paths.ProjectExists:
	case c.BaseURL == "":
		all = append(all, found(configMissing, "no configuration file; its place is %s",
			cmp.Or(paths.User, "not known without a home folder")))
	default:
		all = append(all, found(configNotNeeded, "no configuration file: flags and the environment have the settings"))
	}
	if values := valuesSetBy(c); len(values) > 0 {
		all = append(all, found(valuesSet, "%s", strings.Join(values, ", ")))
	}
	for _, w := range c.Warnings() {
		all = append(all, found(unknownVariable, "%s", w))
	}
	return all
}

func foundFile(path string) finding {
	mode := ""
	if info, err := os.Stat(path); err == nil {
		mode = " (" + info.Mode().Perm().String() + ")"
	}
	return found(configFound, "%s%s", path, mode)
}

func exposed(k *kind, path, who, chmod string) finding {
	f := found(k, "%s may read or change %s", who, path)
	f.NextCommand = chmod
	return f
}

func valuesSetBy(c config.Config) []string {
	var all []string
	for _, e := range c.List() {
		if e.Origin.Level == config.FromDefault {
			continue
		}
		if text := settingName(e.Key) + " (" + e.Origin.String() + ")"; !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func settingName(key string) string {
	for _, s := range config.Settings() {
		if strings.HasPrefix(key, s.Key+".") {
			return s.Key
		}
	}
	return key
}

func (x *examination) apiKey(context.Context) []finding {
	c := x.call.Config
	_, err := x.call.ServiceKey(c.BaseURL)
	switch {
	case errors.Is(err, config.ErrNoAPIKey):
		return []finding{found(keyMissing, "%v", err)}
	case err != nil:
		return []finding{found(keyUnusable, "%v", err).hinted(command.HintOf(err))}
	}
	file := c.APIKeyFile()
	switch {
	case c.APIKeyFromStdin():
		return []finding{found(keyFound, "set by standard input")}
	case c.APIKeySetting() == "api_key_keyring":
		return []finding{found(keyFound, "read from the keyring (%s)", c.Origin("api_key_keyring"))}
	case file == "":
		return []finding{found(keyFound, "set by %s", c.Origin("api_key"))}
	}
	if who, chmod := config.Exposed(file); who != "" {
		return []finding{exposed(keyReadable, file, who, chmod)}
	}
	return []finding{found(keyFound, "read from %s (%s)", file, c.Origin("api_key_file"))}
}

func (x *examination) webhooks(context.Context) []finding {
	c := x.call.Config
	var all []finding
	for _, place := range c.Webhook.Secrets {
		if path, isFile := strings.CutPrefix(place, "file:"); isFile {
			if who, chmod := config.Exposed(path); who != "" {
				all = append(all, exposed(secretReadable, path, who, chmod))
			}
		}
	}
	secrets, err := x.call.AnyWebhookSecrets()
	if err == nil {
		_, err = x.call.Verifier()
	}
	scheme, mode := c.Webhook.Scheme, c.Webhook.Verify
	switch {
	case err != nil:
		all = append(all, found(schemeUnusable, "%v", err).hinted(command.HintOf(err)))
	case mode == "off":
		all = append(all, found(verifyingOff,
			"deliveries are not verified and count as they come: webhook.verify is off (%s)", c.Origin("webhook.verify")))
	case scheme == "" && len(secrets) == 0:
		all = append(all, found(webhooksUnused, "no webhook secret is set"))
	case scheme == "":
		all = append(all, found(schemeMissing, "%s set, but no signature scheme: deliveries are recorded and not verified",
			command.Plural(len(secrets), "secret")))
	case mode == "observe":
		all = append(all, found(verifyingOff, "deliveries that do not verify are accepted: webhook.verify is observe (%s)",
			c.Origin("webhook.verify")))
	default:
		all = append(all, found(schemePinned, "scheme %q with %s", scheme, command.Plural(len(secrets), "secret")))
	}
	return all
}

func (x *examination) version(context.Context) []finding {
	i := buildinfo.Read()
	return []finding{found(versionKnown, "waybill %s, %s, %s", i.Version, i.Go, i.Platform)}
}

func (x *examination) terminal(context.Context) []finding {
	io := x.call.IO
	switch {
	case !io.Out.IsTerminal():
		return []finding{found(terminalNone, "standard output is no terminal")}
	case !io.UTF8():
		return []finding{found(terminalASCII, "%d columns; the locale is not UTF-8", io.Out.Width())}
	}
	return []finding{found(terminalKnown, "%d columns, UTF-8", io.Out.Width())}
}
