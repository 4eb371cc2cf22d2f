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

// fieldNames are the names of a field in the service's interface.
//
// Interface: Resources and their fields, tracking creation item.
var fieldNames = map[string][]string{
	tracking.FieldReferID:     {tracking.FieldReferID},
	tracking.FieldNumber:      {tracking.FieldNumber},
	tracking.FieldCarrierCode: {tracking.FieldCarrierCode, carrierCodePath},
}

// carrierCodePath is where a carrier code stands in an item.
//
// Interface: Resources and their fields, tracking creation item.
const carrierCodePath = tracking.FieldMetadata + "." + tracking.FieldCarrierCode

// hintWords are parts of names, in several languages. A hint uses them to
// propose a column; they never decide what is read.
var hintWords = map[string][]string{
	tracking.FieldReferID: {"order", "bestell", "auftrag", "commande", "pedido", "ordine", "zamow", "zamów", "objedn", "ref", "注文", "订单", "заказ"},
	tracking.FieldNumber: {
		"track", "waybill", "awb", "sendung", "paket", "colis", "suivi", "envio", "envío", "seguimiento", "spedizione",
		"przesyl", "przesył", "zasil", "zásil", "consign", "parcel", "追跡", "运单", "快递", "трек",
	},
	tracking.FieldCarrierCode: {"carrier"},
	FieldCarrier:              {"carrier", "courier", "provider"},
}

// SoundsLike returns the field that a column's name sounds like in some language:
// rawTrackingNumber, or [FieldCarrier]; empty for others.
func SoundsLike(name string) string {
	name = strings.ToLower(name)
	for _, field := range []string{tracking.FieldNumber, FieldCarrier} {
		if slices.ContainsFunc(hintWords[field], func(part string) bool { return strings.Contains(name, part) }) {
			return field
		}
	}
	return ""
}

// foldName returns a name as names are compared: without case, white space,
// invisible characters and the punctuation that exports join words with.
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-' || r == '#' || r == '.' || unicode.IsSpace(r) || tracking.Invisible(r):
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// nameRank returns how well a name fits a field: 3 for the interface's name, 2
// for one that is equal without case and punctuation, 1 for a synonym, else 0.
func nameRank(field, name string) int {
	if slices.Contains(fieldNames[field], name) {
		return 3
	}
	folded := foldName(name)
	for _, o := range fieldNames[field] {
		if foldName(o) == folded {
			return 2
		}
	}
	if slices.Contains(synonyms[field], folded) {
		return 1
	}
	return 0
}

// intendedField returns the path of the item's field that an unknown JSON name
// may be meant for, or "".
func intendedField(name string) string {
	for _, field := range []string{tracking.FieldReferID, tracking.FieldNumber} {
		if nameRank(field, name) > 0 {
			return field
		}
	}
	if nameRank(tracking.FieldCarrierCode, name) > 0 || nameRank(FieldCarrier, name) > 0 {
		return carrierCodePath
	}
	if foldName(name) == tracking.FieldMetadata {
		return tracking.FieldMetadata
	}
	return ""
}
