#!/bin/sh
# Makes the certificates of the TLS tests, in this folder. They protect nothing.
set -e
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1"; }

# sign NAME ISSUER KEY END OPTIONS...: NAME.pem, valid from 2020 to END (YYYYMMDD)
sign() {
    name=$1 issuer=$2 key=$3 end=$4
    shift 4
    mkdir -p "$work/$issuer"
    : > "$work/$issuer/index"
    cat > "$work/ca.conf" <<CONF
[ca]
default_ca = it
[it]
database = $work/$issuer/index
new_certs_dir = $work/$issuer
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
CONF
    openssl req -new -key "$key" -subj "/CN=Fanfare test $name" -out "$work/$name.csr"
    openssl ca -batch -notext -config "$work/ca.conf" -in "$work/$name.csr" -out "$name.pem" \
        -startdate 20200101000000Z -enddate "${end}000000Z" -extfile "$work/$name.ext" "$@"
}

ca() { # NAME
    key "$work/$1.key"
    echo 'basicConstraints=critical,CA:TRUE' > "$work/$1.ext"
    sign "$1" "$1" "$work/$1.key" 21200101 -selfsign -keyfile "$work/$1.key"
}

leaf() { # NAME ISSUER SUBJECT-ALT-NAME END
    key "$1.key"
    printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\n' "$3" > "$work/$1.ext"
    sign "$1" "$2" "$1.key" "$4" -cert "$2.pem" -keyfile "$work/$2.key"
}

ca root
ca stranger
leaf server root DNS:exchange.test,IP:127.0.0.1 21200101
leaf client root DNS:trader.test 21200101
leaf outsider stranger DNS:outsider.test 21200101
leaf expired root DNS:exchange.test 20200201
rm stranger.pem
