// Command waybill creates, watches and receives shipment trackings.
package main

import (
	"os"

	"github.com/waybill-cli/waybill/internal/cli"
)

func main() {
	os.Exit(int(cli.Main()))
}
