package intake

import (
	"slices"
	"strings"
	"unicode"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// synonyms are the names, folded, that exports give to a field. The
// interface's own name of a field comes before any of them.
var synonyms = map[string][]string{
	tracking.FieldReferID: {
		"referenceid", "referenceno", "referencenumber", "reference",
		"refid", "refno", "refnumber", "ref",
		"orderid", "orderno", "ordernum", "ordernumber", "ordernr", "ordername", "order",
		"orderref", "orderreference", "ordercode",
		"customerreference", "customerref", "clientreference",
	},
	tracking.FieldNumber: {
		"trackingnumber", "trackingno", "trackingnum", "trackingnr", "trackingid", "trackingcode", "tracking",
		"awb", "awbnumber", "awbno", "airwaybill", "airwaybillnumber", "airwaybillno",
		"waybill", "waybillnumber", "waybillno", "waybillid",
		"consignment", "consignmentnumber", "consignmentno", "consignmentid",
		"parcelnumber", "parcelno", "shipmentnumber", "shipmentno",
		"shipmenttrackingnumber", "carriertrackingnumber", "parceltrackingnumber", "packagetrackingnumber",
	},
	FieldCarrier: {
		"carrier", "carriername", "courier", "couriername", "couriercode",
		"trackingprovider", "trackingcompany", "trackingcarrier",
		"shippingcarrier", "shippingcompany", "shippingprovider", "shippingcourier",
		"shipmentcarrier", "deliverycompany", "deliverycarrier", "logisticsprovider", "shipvia",
	},
}

// own are the interface's names of a field, as the service spells them.
//
// Interface: Resources and their fields, tracking creation item.
var own = map[string][]string{
	tracking.FieldReferID:     {tracking.FieldReferID},
	tracking.FieldNumber:      {tracking.FieldNumber},
	tracking.FieldCarrierCode: {tracking.FieldCarrierCode, carrierCodePath},
}

// carrierCodePath is where a carrier code stands in an item.
//
// Interface: Resources and their fields, tracking creation item.
const carrierCodePath = tracking.FieldMetadata + "." + tracking.FieldCarrierCode

// likely are parts of names, in several languages, by which a hint picks the
// column to propose. Nothing is read because of them.
var likely = map[string][]string{
	tracking.FieldReferID: {"order", "bestell", "auftrag", "commande", "pedido", "ordine", "zamow", "zamów", "objedn", "ref", "注文", "订单", "заказ"},
	tracking.FieldNumber: {
		"track", "waybill", "awb", "sendung", "paket", "colis", "suivi", "envio", "envío", "seguimiento", "spedizione",
		"przesyl", "przesył", "zasil", "zásil", "consign", "parcel", "追跡", "运单", "快递", "трек",
	},
	tracking.FieldCarrierCode: {"carrier"},
	FieldCarrier:              {"carrier", "courier", "provider"},
}

// fold brings a name into the form in which names are compared: without case,
// white space, invisible characters and the marks that exports join words with.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-' || r == '#' || r == '.' || unicode.IsSpace(r) || tracking.Invisible(r):
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// rank says how well a name fits a field: 3 for the interface's own name, 2
// for the same but for case and marks, 1 for a synonym, 0 for no fit.
func rank(field, name string) int {
	if slices.Contains(own[field], name) {
		return 3
	}
	folded := fold(name)
	for _, o := range own[field] {
		if fold(o) == folded {
			return 2
		}
	}
	if slices.Contains(synonyms[field], folded) {
		return 1
	}
	return 0
}

// meant returns the path of the item's field that somebody may have meant by a
// JSON field's name, or "".
func meant(name string) string {
	for _, field := range []string{tracking.FieldReferID, tracking.FieldNumber} {
		if rank(field, name) > 0 {
			return field
		}
	}
	if rank(tracking.FieldCarrierCode, name) > 0 || rank(FieldCarrier, name) > 0 {
		return carrierCodePath
	}
	if fold(name) == tracking.FieldMetadata {
		return tracking.FieldMetadata
	}
	return ""
}
