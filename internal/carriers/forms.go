package carriers

import (
	"regexp"
	"strings"
	"sync"
)

type form struct {
	Form

	pattern *regexp.Regexp
	from    int               // what the rule covers begins at this character
	prepend string            // and with this
	fits    func(string) bool // nil without a published rule
}

// Sources of forms and rules.
const (
	labelUPS   = "UPS Guide to Labeling; github.com/jkeen/tracking_number_data couriers/ups.json"
	helpUPS    = "ups.com, help centre: tracking number formats"
	labelFedEx = "FedEx Ground Label Layout Specification; github.com/jkeen/tracking_number_data couriers/fedex.json"
	pub199     = "USPS Publication 199, Intelligent Mail Package Barcode, MOD 10 check digit"
	upuS10     = "Universal Postal Union standard S10-12"
	gs1Spec    = "GS1 General Specifications, 7.9 check digit calculations"
	paketda    = "paketda.de/firmenkunden/paket-pruefziffern.html"
	dataSet    = "github.com/jkeen/tracking_number_data"
	trackHelp  = "the carrier's tracking help; trackpackage.live/guides/tracking-number-formats"
	guesser    = "github.com/sailrish/shipit guessCarrier"
	nihon7DR   = "7DR: nanoappli.com/blog/archives/369, gyomu.org/faq/view/7dr"
	dpdLabel   = "DPD Parcel Label Specification 2.4.1; ISO/IEC 7064"
	airWaybill = "DHL Express waybill, mod 7: paketda.de; Aramex Shipments Tracking API Manual"
)

func checked(carrier, name, pattern, source string, fits func(string) bool) *form {
	return &form{Form: Form{Carrier: carrier, Name: name, Source: source, Checked: true}, pattern: compile(pattern), fits: fits}
}

func open(carrier, name, pattern, source string) *form {
	return &form{Form: Form{Carrier: carrier, Name: name, Source: source}, pattern: compile(pattern)}
}

// after returns the form with a rule that covers what follows n characters, with prepend before it.
func (f *form) after(n int, prepend string) *form {
	f.from, f.prepend = n, prepend
	return f
}

// shared returns the form as one of what several carriers deliver.
func (f *form) shared() *form {
	f.Shared = true
	return f
}

// loosely returns the form as one that only its length tells.
func (f *form) loosely() *form {
	f.Loose = true
	return f
}

// glsDepot are the third and fourth digit of GLS numbers: the kind of shipment.
const glsDepot = "##[1-5]#{9}|##6[0-8]#{8}|##7[124]#{8}|##85#{8}"

// forms is read from the top: what has a beginning of its own stands before what has only a length.
var forms = sync.OnceValue(func() []*form {
	return []*form{
		checked("UPS", "1Z", "1Z*{15}#", labelUPS, alternating).after(2, ""),
		open("UPS", "test number 1Z12345E", "1Z12345E*{9}#", "UPS Tracking Developer Guide, test numbers: their check digits are not kept"),
		checked("UPS", "waybill", "[AHJKV]#{10}", labelUPS, alternating).after(1, ""),
		open("UPS", "waybill T", "T#{10}", helpUPS),
		open("UPS Mail Innovations", "MI", "MI#{6}*{1,22}", helpUPS),

		checked("FedEx", "Ground 96 (22 digits)", "96#{20}", labelFedEx, gs1).after(7, ""),
		checked("FedEx", "96 (22 digits)", "96#{20}", guesser, fedex12),
		checked("FedEx", "Express (34 digits)", "10#{32}", labelFedEx, fedex14).after(20, ""),
		checked("FedEx", "Ground GSN (34 digits)", "96#{32}", labelFedEx, fedex14).after(20, ""),
		checked("FedEx", "ASTRA barcode (32 digits)", "3#{31}", dataSet+" couriers/fedex.json", astra),
		checked("FedEx", "door tag", "DT#{12}", guesser, fedex12).after(2, ""),
		checked("FedEx", "SmartPost (20 digits)", "##29#{16}|7489#{16}", labelFedEx, gs1).after(0, "92"),

		checked("USPS", "IMpb", "9[1-5]#{20}(#{4})?", pub199, gs1).shared(),
		checked("USPS", "IMpb with 420 and ZIP code", "420#{25}(##){0,3}", pub199, usps420).after(3, "").shared(),
		open("USPS", "Global Express Guaranteed", "82#{8}", "usps.com, tracking number formats").loosely(),

		checked("", "S10", "@@#{9}@@", upuS10, s10).shared(),
		open("Deutsche Post", "S10 with appendix", "R@#{9}DE#{3}", upuS10).shared(),

		open("DHL", "piece number", "J@{1,3}#{9,30}", "DHL Express, licence plate; "+dataSet+" couriers/dhl.json"),
		open("Yodel", "JD", "JD#{16}|JJD#{16}", dataSet+" couriers/yodel.json"),
		open("DHL eCommerce", "GM", "GM#{10,39}|LX#{10,39}|RX#{10,39}|UV#{10,39}|CN#{10,39}|SG#{10,39}|TH#{10,39}|IN#{10,39}|HK#{10,39}|MY#{10,39}", dataSet+" couriers/dhl.json"),
		checked("DHL and others", "NVE (00 and 18 digits)", "00#{18}", gs1Spec+"; "+paketda, gs1).shared(),

		open("OnTrac", "C or D", "[CD]#{14}", dataSet+" couriers/ontrac.json: many numbers in use fail the rule there"),
		open("LaserShip", "1LS", "1LS#{12,15}", dataSet+" couriers/lasership.json"),
		open("LaserShip", "L and 8 digits", "L@#{8}", dataSet+" couriers/lasership.json"),
		open("Amazon", "TBA", "TB[ACM]#{9,13}", dataSet+" couriers/amazon.json"),
		open("Amazon", "international", "C#{10}", dataSet+" couriers/amazon.json"),
		open("Landmark Global", "LTN", "LTN#{8}N1", dataSet+" couriers/landmark.json"),
		open("Canpar", "letter and 21 digits", "[CDKLSUXZ]#{21}", dataSet+" couriers/canpar.json"),
		open("Spee-Dee", "SP", "SP#{18}", dataSet+" couriers/speedee.json"),
		open("GOFO Express", "GFUS", "GFUS#{14}", dataSet+" couriers/gofo.json"),
		open("UniUni", "UUS", "UUS#{10,20}", trackHelp),
		checked("Old Dominion", "PRO", "072#{8}|77[78]#{8}|80#{9}", dataSet+" couriers/old_dominion.json", luhn),
		open("Purolator", "3 letters and 9 digits", "@{3}#{9}", dataSet+" couriers/purolator.json"),

		checked("DPD", "28 characters", "#{27}*", dpdLabel, iso7064),
		checked("DPD", "14 digits and check character", "#{14}@", dpdLabel, iso7064),
		open("Parcelforce", "letters and digits", "@@#{7}|@{4}#{10}", "parcelforce.com/help-and-advice/sending-worldwide/tracking-number-formats"),
		open("Evri", "16 characters", "@##@{3}*{10}", "evri.com, tracking help"),
		checked("La Poste", "Colissimo", "[5-9]@#{11}", "metacpan.org/pod/Business::Colissimo, from the Colissimo label specification", gs1).after(2, ""),
		open("La Poste", "tracked letter", "[0-4]@#{11}", "laposte.fr, tracking help"),
		open("PostNL", "3S", "3S*{7,20}", "developer.postnl.nl, barcode service"),
		open("Swiss Post", "99", "99#{16}|99.##.#{6}.#{8}", "post.ch, barcode manual for business customers"),
		open("bpost", "24 digits", "3232#{20}", "bpost, Shipping Manager API"),
		open("Correos", "PK or PQ", "P[A-Z]*{20,21}", "correos.es, tracking help"),
		open("Australia Post", "article number", "@@#{19}|33@{2,4}*{8,18}|99[67]#{5}@{3}#{13,20}", "neodynamic.com/barcodes/Australia-Post-Domestic-eParcel-Barcode.aspx"),

		open("SF Express", "SF", "SF#{12,15}", trackHelp),
		open("Cainiao", "LP", "LP#{12,16}|CNUSUP#{8,11}|CNG@{2}#{8,14}", "cnusup.com/news/package-tracking-numbers-explained"),
		open("YunExpress", "YT", "YT#{16}", dataSet+" couriers/yunexpress.json"),
		open("YTO Express", "YT", "YT#{13}", trackHelp),
		open("4PX", "4PX", "4PX#{10,16}@{0,2}", trackHelp),
		open("J&T Express", "JT", "JT#{10,15}", trackHelp),
		open("Pocztex", "PX", "PX#{10}", "poczta-polska.pl, tracking help"),

		checked("FedEx", "Express (12 digits)", "#{12}", labelFedEx, fedex12).loosely(),
		checked("Purolator", "12 digits", "[0-5]#{11}", dataSet+" couriers/purolator.json", luhn).loosely(),
		checked("DHL Paket", "Identcode (12 digits)", "#{12}", paketda+"; de.wikipedia.org/wiki/Leitcode", identcode).loosely(),
		checked("GLS", "12 digits", glsDepot, paketda, gls).loosely(),
		checked("Yamato, Sagawa, Japan Post", "12 digits", "#{12}", nihon7DR, mod7).loosely(),
		checked("DHL Express, Aramex", "10 digits", "#{10}", airWaybill, mod7).loosely(),
		checked("FedEx", "Ground (15 digits)", "#{15}", labelFedEx, gs1).loosely(),
		checked("DPD", "15 digits", "#{15}", dpdLabel, iso7064).loosely(),
		checked("Canada Post", "16 digits", "#{16}", dataSet+" couriers/canadapost.json", gs1).loosely(),
		checked("SSCC", "18 digits", "#{18}", gs1Spec, gs1).loosely(),
		checked("USPS", "20 digits", "#{20}", pub199, usps20).loosely(),
		open(Several, "9 digits (UPS, TNT)", "#{9}", helpUPS).loosely(),
		open(Several, "11 digits (GLS, DHL, Blue Dart, Aramex)", "#{11}", paketda+"; trackpackage.live").loosely(),
		open(Several, "13 digits", "#{13}", trackHelp).loosely(),
		open(Several, "14 digits (DPD, Hermes, GLS)", "#{14}", paketda).loosely(),
		open(Several, "17 digits (Bring)", "#{17}", "developer.bring.com").loosely(),
		open("InPost", "24 digits", "#{24}", "inpost.pl, tracking help").loosely(),
	}
})

func (f *form) named(s string) Form {
	named := f.Form
	if named.Carrier == "" {
		named.Carrier = postalService(s[11:])
		if userAssigned(s[11:]) {
			named.Name += " (no country has the code " + s[11:] + ")"
		}
	}
	return named
}

// patternSigns are what patterns write shortly: # is a digit, @ a capital letter, *
// either of them. The rest is as in package regexp, but for the dot, which is itself.
var patternSigns = strings.NewReplacer("#", "[0-9]", "@", "[A-Z]", "*", "[0-9A-Z]", ".", `\.`)

func compile(pattern string) *regexp.Regexp {
	return regexp.MustCompile("^(?:" + patternSigns.Replace(pattern) + ")$")
}

// posts are the postal services that people know by name, by the country code
// that ends their S10 numbers. YP and WW are no countries: operators use them.
const posts = "AE Emirates Post;AT Österreichische Post;AU Australia Post;BE bpost;BG Bulgarian Posts;BR Correios;BY Belpochta;CA Canada Post;CH Swiss Post;" +
	"CL Correos de Chile;CN China Post;CZ Česká pošta;DE Deutsche Post;DK PostNord;EE Omniva;EG Egypt Post;ES Correos;FI Posti;FR La Poste, Chronopost;" +
	"GB Royal Mail, Parcelforce;GR Hellenic Post;HK Hongkong Post;HR Hrvatska pošta;HU Magyar Posta;ID Pos Indonesia;IE An Post;IL Israel Post;IN India Post;" +
	"IT Poste Italiane;JP Japan Post;KR Korea Post;KZ Kazpost;LT Lietuvos paštas;LU Post Luxembourg;LV Latvijas Pasts;MX Correos de México;MY Pos Malaysia;" +
	"NL PostNL;NO Posten Norge;NZ NZ Post;PH PHLPost;PL Poczta Polska;PT CTT;RO Poșta Română;RS Pošta Srbije;RU Russian Post;SA Saudi Post;SE PostNord;" +
	"SG SingPost;SI Pošta Slovenije;SK Slovenská pošta;TH Thailand Post;TR PTT;TW Chunghwa Post;UA Ukrposhta;US USPS;VN Vietnam Post;WW TNT;YP Yanwen;ZA South African Post Office"

func postalService(code string) string {
	for entry := range strings.SplitSeq(posts, ";") {
		if name, ok := strings.CutPrefix(entry, code+" "); ok {
			return name
		}
	}
	return "postal service of " + code
}
