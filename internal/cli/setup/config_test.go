package setup

import (
	"encoding/json"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
)

func TestConfigListMasksSecretsAndNamesOrigins(t *testing.T) {
	c, stdout, _ := clitest.Call(t, "WAYBILL_OUTPUT=json", "WAYBILL_API_KEY=very-secret")
	if err := runConfigList(c, settingColumns()); err != nil {
		t.Fatal(err)
	}
	var list []settingJSON
	if err := json.Unmarshal(stdout.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Key == "api_key" && s.Value == "***" && s.Origin != "" {
			return
		}
	}
	t.Errorf("no masked api_key with its origin in %s", stdout)
}
