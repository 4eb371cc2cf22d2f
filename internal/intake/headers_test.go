package intake_test

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/intake"
)

// Headers of shops, warehouses and carriers, in their languages.
func TestUsualHeaders(t *testing.T) {
	for header, want := range map[string]string{
		"Bestellnummer,Sendungsnummer,Betrag":                                   "1|2|",
		"Bestell-Nr.,Paketschein-Nr.":                                           "1|2|",
		"Auftrags-ID,Versanddienstleister,Trackingnummer":                       "1|3|",
		"N° de commande,Transporteur,N° de suivi":                               "1|3|",
		"Nº de commande,Date,Numéro de suivi":                                   "1|3|",
		"NUMERO DE COMMANDE,numero de colis":                                    "1|2|",
		"Nº de pedido,Nº de seguimiento,Transportista":                          "1|2|",
		"Pedido,Número de guía":                                                 "1|2|",
		"Numero ordine,Codice di tracciamento,Corriere":                         "1|2|",
		"N. ordine,Lettera di vettura":                                          "1|2|",
		"Número do pedido,Código de rastreio,Transportadora":                    "1|2|",
		"Encomenda,Código do objeto":                                            "1|2|",
		"Bestelnummer,Track & Trace,Vervoerder":                                 "1|2|",
		"Ordernummer,Zendingsnummer":                                            "1|2|",
		"Numer zamówienia,Kurier,Numer przesyłki":                               "1|3|",
		"Nr zamówienia,Nr listu przewozowego":                                   "1|2|",
		"Name,Email,Fulfillment: Tracking Company,Fulfillment: Tracking Number": "1|4|",
		"Order - Number,Ship Date,Tracking Number":                              "1|3|",
		"order_id,tracking_provider,tracking_number,date_shipped":               "1|3|",
		"amazon-order-id,merchant-order-id,shipment-id,carrier,tracking-number": "1|5|",
		"Increment ID,Carrier,Track Number":                                     "1|3|",
		"TC_ORDER_ID,TRACKING_NBR":                                              "1|2|",
		"ORDER_NBR,tracking_nbr":                                                "1|2|",
		"EXTERNORDERKEY,TRACKINGID":                                             "1|2|",
		"Document Number,Tracking Numbers":                                      "1|2|",
		"Source Document,Tracking Reference,Carrier":                            "1|2|",
		"Ｏｒｄｅｒ Ｎｏ,ＡＷＢ":                                                          "1|2|",
	} {
		got, err := columnsOf(t, header, intake.Options{})
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", header, got, err, want)
		}
	}
	// A column called Name is a person's, unless it stands in an export of that shop.
	if got, err := columnsOf(t, "Name,Tracking Number", intake.Options{}); err == nil {
		t.Errorf("Name alone: got %s", got)
	}
}
