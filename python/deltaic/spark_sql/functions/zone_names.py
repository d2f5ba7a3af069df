"""Names of time zones for the letters z and zzzz of a pattern: CET and Central European Summer Time. They are
those of Java 17, on which Spark runs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from deltaic.spark_sql import values as v

if TYPE_CHECKING:
    from deltaic.spark_sql.casts import Zone

_SHORT, _LONG = ("z", "zz", "zzz"), "zzzz"


def zone_names(zone: Zone, clock: str, instant: str) -> dict[str, str]:
    """Returns letters -> SQL of the name of the zone at an instant, whose local time is `clock`; nothing for
    a zone without names here.

    It is summer time if the offset is greater than the lesser one of January and July of that year. In years
    before those for which this holds, the SQL raises UNSUPPORTED_DATETIME."""
    if zone.name == "UTC":
        return {**dict.fromkeys(_SHORT, "'UTC'"), _LONG: "'Coordinated Universal Time'"}
    if (names := _names().get(zone.name)) is None:
        return {}
    winter, summer, long_winter, long_summer, since = names
    year = f"year({clock})"
    ends = [zone.instant(f"make_timestamp({year}, {month}, 1, 0, 0, 0)") for month in (1, 7)]
    offsets = [
        f"(epoch_us(make_timestamp({year}, {month}, 1, 0, 0, 0)) - epoch_us({end}))"
        for month, end in zip((1, 7), ends, strict=True)
    ]
    is_summer = f"epoch_us({clock}) - epoch_us({instant}) > least({', '.join(offsets)})"
    early = v.failure("UNSUPPORTED_DATETIME", v.text(f"the name of {zone.name} in a year before {since}"))

    def name(standard: str, daylight: str) -> str:
        shown = (
            f"CASE WHEN {is_summer} THEN {v.text(daylight)} ELSE {v.text(standard)} END"
            if daylight
            else v.text(standard)
        )
        return f"(CASE WHEN {year} < {since} THEN {early} ELSE {shown} END)"

    return {**dict.fromkeys(_SHORT, name(winter, summer)), _LONG: name(long_winter, long_summer)}


@cache
def _names() -> dict[str, tuple[str, str, str, str, int]]:
    """Returns zone -> short names of its standard and its summer time, long names of both, and the first year
    of which they are known here."""
    found: dict[str, tuple[str, str, str, str, int]] = {}
    for line in _TABLE.strip().replace("\n ", " ").splitlines():
        winter, summer, long_winter, long_summer, since, zones = line.split("|")
        found |= dict.fromkeys(zones.split(), (winter, summer, long_winter, long_summer, int(since)))
    return found


_TABLE = """
ACST||Australian Central Standard Time||1970|Australia/Darwin Australia/North
ACST|ACDT|Australian Central Standard Time|Australian Central Daylight Time|1970|Australia/Adelaide
 Australia/Broken_Hill Australia/South Australia/Yancowinna
ACT|ACST|Acre Standard Time|Acre Summer Time|2009|America/Eirunepe America/Porto_Acre America/Rio_Branco
 Brazil/Acre
ACWST|ACWDT|Australian Central Western Standard Time|Australian Central Western Daylight
 Time|1970|Australia/Eucla
AEST|AEDT|Australian Eastern Standard Time|Australian Eastern Daylight Time|1970|Australia/ACT
 Australia/Brisbane Australia/Canberra Australia/Currie Australia/Hobart Australia/Lindeman
 Australia/Melbourne Australia/NSW Australia/Queensland Australia/Sydney Australia/Tasmania
 Australia/Victoria
AEST|AEDT|Australian Eastern Standard Time|Australian Eastern Daylight Time|2011|Antarctica/Macquarie
AFT||Afghanistan Time||1970|Asia/Kabul
AKST||Gambier Time||1970|SystemV/YST9
AKST|AKDT|Alaska Standard Time|Alaska Daylight Time|1970|America/Sitka America/Yakutat SystemV/YST9YDT
AKST|AKDT|Alaska Standard Time|Alaska Daylight Time|1981|America/Juneau
AKST|AKDT|Alaska Standard Time|Alaska Daylight Time|1984|America/Anchorage America/Nome US/Alaska
AKST|AKDT|Alaska Standard Time|Alaska Daylight Time|2020|America/Metlakatla
AMT|AMST|Amazon Standard Time|Amazon Summer Time|1970|America/Boa_Vista America/Campo_Grande
 America/Cuiaba America/Manaus America/Porto_Velho Brazil/West
AMT|AMST|Armenia Standard Time|Armenia Summer Time|1996|Asia/Yerevan
ANAT|ANAST|Anadyr Standard Time|Anadyr Summer Time|2012|Asia/Anadyr
AQTT|AQTST|West Kazakhstan Time|Aqtau Summer Time|2005|Asia/Aqtau
AQTT|AQTST|West Kazakhstan Time|Aqtobe Summer Time|1993|Asia/Aqtobe
ART|ARST|Argentina Standard Time|Argentina Summer Time|2001|America/Argentina/Buenos_Aires
 America/Argentina/Catamarca America/Argentina/ComodRivadavia America/Argentina/Cordoba
 America/Argentina/Jujuy America/Argentina/La_Rioja America/Argentina/Rio_Gallegos
 America/Argentina/Salta America/Argentina/Tucuman America/Argentina/Ushuaia America/Buenos_Aires
 America/Catamarca America/Cordoba America/Jujuy America/Rosario
ART|ARST|Argentina Standard Time|Argentina Summer Time|2005|America/Argentina/Mendoza
 America/Argentina/San_Juan America/Mendoza
ART|ARST|Argentina Standard Time|Argentina Summer Time|2010|America/Argentina/San_Luis
AST||Arabian Standard Time||1970|Asia/Aden Asia/Kuwait Asia/Riyadh
AST||Arabian Standard Time||1973|Asia/Bahrain Asia/Qatar
AST||Atlantic Standard Time||1970|America/Anguilla America/Antigua America/Aruba America/Blanc-Sablon
 America/Curacao America/Dominica America/Grenada America/Guadeloupe America/Kralendijk
 America/Lower_Princes America/Marigot America/Montserrat America/Port_of_Spain America/Puerto_Rico
 America/St_Barthelemy America/St_Kitts America/St_Lucia America/St_Thomas America/St_Vincent
 America/Tortola America/Virgin SystemV/AST4
AST|ADT|Arabian Standard Time|Arabian Daylight Time|1970|Asia/Baghdad
AST|ADT|Atlantic Standard Time|Atlantic Daylight Time|1970|America/Barbados America/Glace_Bay
 America/Goose_Bay America/Halifax America/Martinique America/Moncton America/Thule Atlantic/Bermuda
 Canada/Atlantic SystemV/AST4ADT
AST|ADT|Atlantic Standard Time|Atlantic Daylight Time|1975|America/Santo_Domingo
AWST|AWDT|Australian Western Standard Time|Australian Western Daylight Time|1970|Australia/Perth
 Australia/West
AZOT|AZOST|Azores Standard Time|Azores Summer Time|1994|Atlantic/Azores
AZT|AZST|Azerbaijan Standard Time|Azerbaijan Summer Time|1993|Asia/Baku
BDT|BDST|Bangladesh Standard Time|Bangladesh Summer Time|1970|Asia/Dacca Asia/Dhaka
BNT||Brunei Darussalam Time||1970|Asia/Brunei
BOT||Bolivia Time||1970|America/La_Paz
BRT|BRST|Brasilia Standard Time|Brasilia Summer Time|1970|America/Araguaina America/Bahia America/Belem
 America/Fortaleza America/Maceio America/Recife America/Sao_Paulo Brazil/East
BRT|BRST|Brasilia Standard Time|Brasilia Summer Time|2009|America/Santarem
BST||Bougainville Standard Time||2015|Pacific/Bougainville
BTT||Bhutan Time||1988|Asia/Thimbu Asia/Thimphu
CAT||Central Africa Time||1970|Africa/Blantyre Africa/Bujumbura Africa/Gaborone Africa/Harare
 Africa/Kigali Africa/Lubumbashi Africa/Lusaka Africa/Maputo
CAT|CAST|Central Africa Time|Central African Summer Time|2001|Africa/Khartoum
CCT||Cocos Islands Time||1970|Indian/Cocos
CET|CEST|Central European Standard Time|Central European Summer Time|1970|Africa/Tunis
 Arctic/Longyearbyen Atlantic/Jan_Mayen Europe/Amsterdam Europe/Andorra Europe/Belgrade Europe/Berlin
 Europe/Bratislava Europe/Brussels Europe/Budapest Europe/Busingen Europe/Copenhagen Europe/Gibraltar
 Europe/Ljubljana Europe/Luxembourg Europe/Madrid Europe/Malta Europe/Monaco Europe/Oslo Europe/Paris
 Europe/Podgorica Europe/Prague Europe/Rome Europe/San_Marino Europe/Sarajevo Europe/Skopje
 Europe/Stockholm Europe/Tirane Europe/Vaduz Europe/Vatican Europe/Vienna Europe/Warsaw Europe/Zagreb
 Europe/Zurich Poland
CET|CEST|Central European Standard Time|Central European Summer Time|1982|Africa/Algiers
CET|CEST|Central European Standard Time|Central European Summer Time|1985|Africa/Ceuta
CET|CEST|Central European Time|Central European Summer Time|1970|CET
CHAST|CHADT|Chatham Standard Time|Chatham Daylight Time|1970|NZ-CHAT Pacific/Chatham
CHOT|CHOST|Ulaanbaatar Standard Time|Ulaanbaatar Summer Time|1970|Asia/Choibalsan
CHUT||Chuuk Time||1970|Pacific/Chuuk Pacific/Truk Pacific/Yap
CKT|CKHST|Cook Islands Standard Time|Cook Islands Half Summer Time|1970|Pacific/Rarotonga
CLT|CLST|Chile Standard Time|Chile Summer Time|2016|America/Santiago Chile/Continental
CLT|CLST|Chile Time|Chile Summer Time|2017|Antarctica/Palmer
COT|COST|Colombia Standard Time|Colombia Summer Time|1970|America/Bogota
CST||Central Standard Time||1970|America/Regina Canada/Saskatchewan SystemV/CST6
CST||Central Standard Time||1973|America/Swift_Current
CST|CDT|Central Standard Time|Central Daylight Time|1970|America/Belize America/Chicago
 America/Costa_Rica America/El_Salvador America/Guatemala America/Matamoros America/Mexico_City
 America/Monterrey America/Rainy_River America/Tegucigalpa America/Winnipeg CST6CDT Canada/Central
 Mexico/General SystemV/CST6CDT US/Central
CST|CDT|Central Standard Time|Central Daylight Time|1974|America/Menominee
CST|CDT|Central Standard Time|Central Daylight Time|1982|America/Merida
CST|CDT|Central Standard Time|Central Daylight Time|1993|America/North_Dakota/Center
CST|CDT|Central Standard Time|Central Daylight Time|1994|America/Managua
CST|CDT|Central Standard Time|Central Daylight Time|2002|America/Rankin_Inlet
CST|CDT|Central Standard Time|Central Daylight Time|2004|America/North_Dakota/New_Salem
CST|CDT|Central Standard Time|Central Daylight Time|2007|America/Indiana/Knox America/Indiana/Tell_City
 America/Knox_IN US/Indiana-Starke
CST|CDT|Central Standard Time|Central Daylight Time|2008|America/Resolute
CST|CDT|Central Standard Time|Central Daylight Time|2011|America/Bahia_Banderas
 America/North_Dakota/Beulah
CST|CDT|China Standard Time|China Daylight Time|1970|Asia/Chongqing Asia/Chungking Asia/Harbin
 Asia/Shanghai PRC
CST|CDT|China Standard Time|China Daylight Time|1975|Asia/Macao Asia/Macau
CST|CDT|Cuba Standard Time|Cuba Daylight Time|2007|America/Havana Cuba
CST|CDT|Taipei Standard Time|Taipei Daylight Time|1970|Asia/Taipei
CVT||Cape Verde Standard Time||1976|Atlantic/Cape_Verde
CXT||Christmas Island Time||1970|Indian/Christmas
ChST|ChDT|Chamorro Standard Time|Chamorro Daylight Time|1970|Pacific/Guam Pacific/Saipan
DAVT||Davis Time||2013|Antarctica/Davis
EAST|EASST|Easter Island Standard Time|Easter Island Summer Time|2016|Chile/EasterIsland Pacific/Easter
EAT||East Africa Time||1970|Africa/Addis_Ababa Africa/Asmara Africa/Asmera Africa/Dar_es_Salaam
 Africa/Djibouti Africa/Kampala Africa/Mogadishu Africa/Nairobi Indian/Antananarivo Indian/Comoro
 Indian/Mayotte
ECT|ECST|Ecuador Time|Ecuador Summer Time|1970|America/Guayaquil
EET|EEST|Eastern European Standard Time|Eastern European Summer Time|1970|Africa/Cairo Asia/Beirut
 Asia/Gaza Asia/Hebron Asia/Nicosia Egypt Europe/Athens Europe/Bucharest Europe/Helsinki Europe/Mariehamn
 Europe/Nicosia Europe/Sofia
EET|EEST|Eastern European Standard Time|Eastern European Summer Time|1990|Europe/Riga Europe/Tallinn
EET|EEST|Eastern European Standard Time|Eastern European Summer Time|1991|Europe/Chisinau Europe/Tiraspol
EET|EEST|Eastern European Standard Time|Eastern European Summer Time|1992|Europe/Kiev Europe/Kyiv
 Europe/Uzhgorod Europe/Zaporozhye
EET|EEST|Eastern European Standard Time|Eastern European Summer Time|2000|Europe/Vilnius
EET|EEST|Eastern European Standard Time|Eastern European Summer Time|2012|Europe/Kaliningrad
EET|EEST|Eastern European Standard Time|Eastern European Summer Time|2014|Africa/Tripoli Libya
EET|EEST|Eastern European Time|Eastern European Summer Time|1970|EET
EET|EEST|Eastern European Time|Eastern European Summer Time|2017|Asia/Famagusta
EST||Eastern Standard Time||1970|America/Atikokan America/Cayman America/Coral_Harbour America/Panama
 SystemV/EST5
EST|EDT|Eastern Standard Time|Eastern Daylight Time|1970|America/Detroit America/Fort_Wayne
 America/Indiana/Indianapolis America/Indiana/Vevay America/Indianapolis America/Jamaica America/Montreal
 America/Nassau America/New_York America/Nipigon America/Port-au-Prince America/Thunder_Bay
 America/Toronto Canada/Eastern EST5EDT Jamaica SystemV/EST5EDT US/East-Indiana US/Eastern US/Michigan
EST|EDT|Eastern Standard Time|Eastern Daylight Time|1975|America/Indiana/Marengo
 America/Kentucky/Louisville America/Louisville
EST|EDT|Eastern Standard Time|Eastern Daylight Time|2001|America/Iqaluit America/Kentucky/Monticello
 America/Pangnirtung
EST|EDT|Eastern Standard Time|Eastern Daylight Time|2008|America/Indiana/Petersburg
 America/Indiana/Vincennes America/Indiana/Winamac
EST|EDT|Eastern Standard Time|Eastern Daylight Time|2016|America/Cancun
EST|EDT|Eastern Standard Time|Eastern Daylight Time|2019|America/Grand_Turk
FJT|FJST|Fiji Standard Time|Fiji Summer Time|1970|Pacific/Fiji
FKT|FKST|Falkland Islands Standard Time|Falkland Islands Summer Time|2011|Atlantic/Stanley
FNT|FNST|Fernando de Noronha Standard Time|Fernando de Noronha Summer Time|1970|America/Noronha
 Brazil/DeNoronha
GALT|GALST|Galapagos Time|Galapagos Summer Time|1970|Pacific/Galapagos
GAMT||Gambier Time||1970|Pacific/Gambier
GET|GEST|Georgia Standard Time|Georgia Summer Time|2006|Asia/Tbilisi
GFT||French Guiana Time||1970|America/Cayenne
GILT||Gilbert Islands Time||1970|Pacific/Tarawa
GMT||Greenwich Mean Time||1970|Africa/Abidjan Africa/Accra Africa/Bamako Africa/Banjul Africa/Conakry
 Africa/Dakar Africa/Freetown Africa/Lome Africa/Nouakchott Africa/Ouagadougou Africa/Timbuktu
 Atlantic/Reykjavik Atlantic/St_Helena Etc/GMT Etc/GMT+0 Etc/GMT-0 Etc/GMT0 Etc/Greenwich GMT GMT0
 Greenwich Iceland
GMT||Greenwich Mean Time||1973|Africa/Monrovia
GMT||Greenwich Mean Time||1976|Africa/Bissau
GMT||Greenwich Mean Time||2019|Africa/Sao_Tome
GMT|BST|Greenwich Mean Time|British Summer Time|1970|Europe/Belfast Europe/Guernsey Europe/Isle_of_Man
 Europe/Jersey Europe/London GB GB-Eire
GMT|CEST|Greenwich Mean Time|Central European Summer Time|1970|Antarctica/Troll
GMT|GMT|Greenwich Mean Time|Greenwich Mean Time|1997|America/Danmarkshavn
GMT|IST|Greenwich Mean Time|Irish Standard Time|1972|Eire Europe/Dublin
GST||Gulf Standard Time||1970|Asia/Dubai Asia/Muscat
GST||South Georgia Time||1970|Atlantic/South_Georgia
GYT||Guyana Time||1993|America/Guyana
HAST||Hawaii-Aleutian Standard Time||1970|Pacific/Johnston
HAST|HADT|Hawaii-Aleutian Standard Time|Hawaii-Aleutian Daylight Time|1984|America/Adak America/Atka
 US/Aleutian
HKT|HKST|Hong Kong Standard Time|Hong Kong Summer Time|1975|Asia/Hong_Kong Hongkong
HOVT|HOVST|Hovd Standard Time|Hovd Summer Time|1970|Asia/Hovd
HST||Hawaii-Aleutian Standard Time||1970|Pacific/Honolulu SystemV/HST10 US/Hawaii
ICT||Indochina Time||1970|Asia/Bangkok Asia/Phnom_Penh Asia/Vientiane
ICT||Indochina Time||1976|Asia/Ho_Chi_Minh Asia/Saigon
IOT||Indian Ocean Time||1970|Indian/Chagos
IRKT|IRKST|Irkutsk Standard Time|Irkutsk Summer Time|2012|Asia/Irkutsk
IRST|IRDT|Iran Standard Time|Iran Daylight Time|1978|Asia/Tehran Iran
IST||India Standard Time||1970|Asia/Calcutta Asia/Kolkata
IST||India Standard Time||2007|Asia/Colombo
IST|IDT|Israel Standard Time|Israel Daylight Time|1970|Asia/Jerusalem Asia/Tel_Aviv Israel
JST||Japan Standard Time||1970|Asia/Tokyo Japan
KGT|KGST|Kyrgyzstan Time|Kirgizstan Summer Time|2006|Asia/Bishkek
KOST||Kosrae Time||1970|Pacific/Kosrae
KRAT|KRAST|Krasnoyarsk Standard Time|Krasnoyarsk Summer Time|2012|Asia/Krasnoyarsk Asia/Novokuznetsk
KST||Korean Standard Time||2019|Asia/Pyongyang
KST|KDT|Korean Standard Time|Korean Daylight Time|1970|Asia/Seoul ROK
LHST|LHDT|Lord Howe Standard Time|Lord Howe Daylight Time|1982|Australia/LHI Australia/Lord_Howe
LINT||Line Islands Time||1980|Pacific/Kiritimati
MAGT|MAGST|Magadan Standard Time|Magadan Summer Time|2017|Asia/Magadan
MART||Marquesas Time||1970|Pacific/Marquesas
MAWT||Mawson Time||1970|Antarctica/Mawson
MET|MEST|Middle Europe Time|Middle Europe Summer Time|1970|MET
MHT||Marshall Islands Time||1970|Pacific/Majuro
MHT||Marshall Islands Time||1994|Kwajalein Pacific/Kwajalein
MMT||Myanmar Time||1970|Asia/Rangoon Asia/Yangon
MSK|MSD|Moscow Standard Time|Moscow Daylight Time|2012|Europe/Kirov
MSK|MSD|Moscow Standard Time|Moscow Summer Time|2012|Europe/Minsk Europe/Moscow W-SU
MSK|MSD|Moscow Standard Time|Moscow Summer Time|2015|Europe/Simferopol
MSK|MSD|Volgograd Standard Time|Volgograd Summer Time|2019|Europe/Volgograd
MST||Mountain Standard Time||1970|America/Creston America/Phoenix SystemV/MST7 US/Arizona
MST|MDT|Mexican Pacific Standard Time|Mexican Pacific Daylight Time|1970|America/Hermosillo
 America/Mazatlan Mexico/BajaSur
MST|MDT|Mountain Standard Time|Mountain Daylight Time|1970|America/Boise America/Denver America/Edmonton
 America/Shiprock America/Yellowknife Canada/Mountain MST7MDT Navajo SystemV/MST7MDT US/Mountain
MST|MDT|Mountain Standard Time|Mountain Daylight Time|1973|America/Dawson_Creek
MST|MDT|Mountain Standard Time|Mountain Daylight Time|1980|America/Inuvik
MST|MDT|Mountain Standard Time|Mountain Daylight Time|2002|America/Cambridge_Bay
MST|MDT|Mountain Standard Time|Mountain Daylight Time|2016|America/Fort_Nelson
MUT|MUST|Mauritius Standard Time|Mauritius Summer Time|1970|Indian/Mauritius
MVT||Maldives Time||1970|Indian/Maldives
MYT||Malaysia Time||1970|Asia/Kuala_Lumpur Asia/Kuching
NCT|NCST|New Caledonia Standard Time|New Caledonia Summer Time|1970|Pacific/Noumea
NFT|NFST|Norfolk Island Standard Time|Norfolk Island Daylight Time|1970|Pacific/Norfolk
NOVT|NOVST|Novosibirsk Standard Time|Novosibirsk Summer Time|2017|Asia/Novosibirsk
NPT||Nepal Time||1970|Asia/Kathmandu Asia/Katmandu
NRT||Nauru Time||1980|Pacific/Nauru
NST|NDT|Newfoundland Standard Time|Newfoundland Daylight Time|1970|America/St_Johns Canada/Newfoundland
NUT||Niue Time||1970|Pacific/Niue
NZST|NZDT|New Zealand Standard Time|New Zealand Daylight Time|1970|Antarctica/McMurdo
 Antarctica/South_Pole NZ Pacific/Auckland
OMST|OMSST|Omsk Standard Time|Omsk Summer Time|2012|Asia/Omsk
ORAT|ORAST|West Kazakhstan Time|Oral Summer Time|2005|Asia/Oral
PET|PEST|Peru Standard Time|Peru Summer Time|1970|America/Lima
PETT|PETST|Petropavlovsk-Kamchatski Standard Time|Petropavlovsk-Kamchatski Summer
 Time|2012|Asia/Kamchatka
PGT||Papua New Guinea Time||1970|Pacific/Port_Moresby
PHOT||Phoenix Islands Time||1980|Pacific/Enderbury
PKT|PKST|Pakistan Standard Time|Pakistan Summer Time|1970|Asia/Karachi
PMST|PMDT|St. Pierre & Miquelon Standard Time|St. Pierre & Miquelon Daylight Time|1981|America/Miquelon
PONT||Ponape Time||1970|Pacific/Pohnpei Pacific/Ponape
PST||Pitcairn Time||1970|SystemV/PST8
PST||Pitcairn Time||1999|Pacific/Pitcairn
PST|PDT|Northwest Mexico Standard Time|Northwest Mexico Daylight Time|1970|America/Santa_Isabel
PST|PDT|Pacific Standard Time|Pacific Daylight Time|1970|America/Ensenada America/Los_Angeles
 America/Tijuana America/Vancouver Canada/Pacific Mexico/BajaNorte PST8PDT SystemV/PST8PDT US/Pacific
PST|PDT|Philippine Standard Time|Philippine Summer Time|1970|Asia/Manila
PWT||Palau Time||1970|Pacific/Palau
QYZT|QYZST|West Kazakhstan Time|Qyzylorda Summer Time|2005|Asia/Qyzylorda
RET||Réunion Time||1970|Indian/Reunion
ROTT||Rothera Time||1970|Antarctica/Rothera
SAKT|SAKST|Sakhalin Standard Time|Sakhalin Summer Time|2017|Asia/Sakhalin
SAMT|SAMST|Samara Standard Time|Samara Summer Time|2012|Europe/Samara
SAST||South Africa Standard Time||1970|Africa/Johannesburg Africa/Maseru Africa/Mbabane
SBT||Solomon Islands Time||1970|Pacific/Guadalcanal
SCT||Seychelles Time||1970|Indian/Mahe
SGT||Singapore Standard Time||1970|Asia/Singapore Singapore
SRET|SREDT|Srednekolymsk Time|Srednekolymsk Daylight Time|2012|Asia/Srednekolymsk
SRT||Suriname Time||1985|America/Paramaribo
SST||Samoa Standard Time||1970|Pacific/Midway Pacific/Pago_Pago Pacific/Samoa US/Samoa
SYOT||Syowa Time||1970|Antarctica/Syowa
TAHT||Tahiti Time||1970|Pacific/Tahiti
TFT||French Southern & Antarctic Time||1970|Indian/Kerguelen
TJT|TJST|Tajikistan Time|Tajikistan Summer Time|1992|Asia/Dushanbe
TKT||Tokelau Time||1970|Pacific/Fakaofo
TLT||East Timor Time||2001|Asia/Dili
TMT|TMST|Turkmenistan Standard Time|Turkmenistan Summer Time|1993|Asia/Ashgabat Asia/Ashkhabad
TOT|TOST|Tonga Standard Time|Tonga Summer Time|1970|Pacific/Tongatapu
TRT|TRST|Turkey Time|Turkey Summer Time|2017|Asia/Istanbul Europe/Istanbul Turkey
TVT||Tuvalu Time||1970|Pacific/Funafuti
ULAT|ULAST|Ulaanbaatar Standard Time|Ulaanbaatar Summer Time|1970|Asia/Ulaanbaatar Asia/Ulan_Bator
UTC||Coordinated Universal Time||1970|Etc/UCT Etc/UTC Etc/Universal Etc/Zulu UCT UTC Universal Zulu
UYT|UYST|Uruguay Standard Time|Uruguay Summer Time|1980|America/Montevideo
UZT|UZST|Uzbekistan Standard Time|Uzbekistan Summer Time|1983|Asia/Samarkand
UZT|UZST|Uzbekistan Standard Time|Uzbekistan Summer Time|1992|Asia/Tashkent
VET||Venezuela Time||2017|America/Caracas
VLAT|VLAST|Vladivostok Standard Time|Vladivostok Summer Time|2012|Asia/Ust-Nera Asia/Vladivostok
VOST||Vostok Time||1995|Antarctica/Vostok
VUT|VUST|Vanuatu Standard Time|Vanuatu Summer Time|1970|Pacific/Efate
WAKT||Wake Island Time||1970|Pacific/Wake
WAT||West Africa Standard Time||1970|Africa/Bangui Africa/Brazzaville Africa/Douala Africa/Kinshasa
 Africa/Lagos Africa/Libreville Africa/Luanda Africa/Malabo Africa/Niamey Africa/Porto-Novo
WAT|WAST|West Africa Standard Time|West Africa Summer Time|1970|Africa/Ndjamena
WET|WEST|Western European Standard Time|Western European Summer Time|1970|Atlantic/Canary Atlantic/Faeroe
 Atlantic/Faroe Atlantic/Madeira
WET|WEST|Western European Standard Time|Western European Summer Time|1997|Europe/Lisbon Portugal
WET|WEST|Western European Time|Western European Summer Time|1997|WET
WFT||Wallis & Futuna Time||1970|Pacific/Wallis
WIB||Western Indonesia Time||1970|Asia/Jakarta Asia/Pontianak
WIT||Eastern Indonesia Time||1970|Asia/Jayapura
WITA||Central Indonesia Time||1970|Asia/Makassar Asia/Ujung_Pandang
WSST|WSDT|Apia Standard Time|Apia Daylight Time|1970|Pacific/Apia
XJT||Xinjiang Standard Time||1970|Asia/Kashgar Asia/Urumqi
YAKT|YAKST|Yakutsk Standard Time|Yakutsk Summer Time|2012|Asia/Khandyga Asia/Yakutsk
YAKT|YAKST|Yakutsk Standard Time|Yakutsk Summer Time|2017|Asia/Chita
YEKT|YEKST|Yekaterinburg Standard Time|Yekaterinburg Summer Time|2012|Asia/Yekaterinburg
"""
"""Standard|summer|long standard|long summer|first year|zones; a line that begins with a blank goes on."""
