package config

// NormalizeURL is what base_url goes through.
func NormalizeURL(raw string, insecure bool) (string, error) {
	s, wrong := normalizeURL(raw, insecure)
	if wrong != nil {
		return "", wrong.at("base_url", Origin{})
	}
	return s, nil
}
