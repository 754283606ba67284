#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Every reference zTensor file, stored and read over HTTP, gives the outcome in
# its table.  Tables and files come from the shared data.  Each file is
# requested twice: the second response uses the cached result and is equal.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp /;
use Test::Xet::Ztensor;

my $data = ($ENV{XET_TEST_DATA} || root() . '/../shared/data')
	. '/ztensor';

plan(skip_all => 'the reference files are absent') unless -d $data;

my $t = Test::Xet->new(
	timeout => 600,
	server => <<'EOF');

        location /strict/ {
            xet_api;
            xet_auth            off;
            xet_api_base        /strict;
            xet_ztensor_strict  on;
        }
EOF

$t->run();

# codes of the tables => codes of the module, where they differ

my %codes = (
	component_overlaps_header => 'overlaps_header',
	overlaps_manifest => 'out_of_bounds'
);

# errors of objects, which do not prevent the listing

my %object = map { $_ => 1 } qw/
	bad_index_dtype length_mismatch misaligned missing_component
	out_of_bounds overlaps_header rank_too_large shape_overflow
/;

# outcomes that a table leaves open, or names differently

my %settled = (
	'c03-no-header-blob-at-0' => 'OK',
	'm24-name-nul' => 'OK',
	'm35-encoding-null' => 'OK',
	'm37-tag-wrapped' => 'OK',
	'x06-overlap-partial' => 'OK',
	'x16-dtype-unknown' => 'UNSUPPORTED unsupported_dtype',
	'x17-dtype-float32' => 'UNSUPPORTED unsupported_dtype',
	'x21-encoding-lz4' => 'UNSUPPORTED unsupported_encoding',
	'x22-encoding-RAW' => 'UNSUPPORTED unsupported_encoding',
	's10-format-unknown' => 'UNSUPPORTED unsupported_format',
	'd01-sha256-ok' => 'VERIFY verified',
	'd02-sha256-upper' => 'VERIFY verified',
	'd03-sha256-wrong' => 'VERIFY mismatch',
	'd04-sha256-short' => 'VERIFY malformed',
	'd06-sha256-over-padding' => 'VERIFY mismatch',
	'd08-crc32c-no-0x' => 'VERIFY verified',
	'd09-crc32c-wrong-no-0x' => 'VERIFY mismatch',
	'd11-unknown-algo' => 'VERIFY unsupported',
	'x31-zstd-fcs-1TiB' => 'DECODE 413 decode_too_large',

	# one call decodes the eight bytes, whatever the window

	'x33-zstd-window-2GiB' => 'OK'
);

my (%hash, %list);

# --------------------------------------------------------------------------

sub rows {
	my ($name) = @_;

	my @lines = split(/\n/, slurp("$data/$name"));
	shift @lines;

	return map { [ split(/\t/) ] } @lines;
}

sub zt {
	my ($hash, $route, @args) = @_;

	return $t->get("/api/v1/zt/$hash$route" . zt_args(@args));
}

# Requests the listing twice, and checks that both responses are equal.

sub list {
	my ($name, $bytes) = @_;

	my $hash = $hash{$name} = $t->upload($bytes)->{hash};
	my $first = zt($hash, '');

	wait_for(10, sub {
		$t->sql('select count(*) from xet.zt_files z join xet.files f'
			. ' on f.id = z.file_id'
			. ' where f.hash = ' . file_key($hash)) > 0
	}) if length($bytes);

	my $second = zt($hash, '');

	is($second->{body}, $first->{body}, "$name: cached");
	is($second->{status}, $first->{status}, "$name: its status");

	return $list{$name} = $second;
}

# Returns a hash as a bytea literal: the string form has its four numbers in
# reverse byte order.

sub file_key {
	my ($hash) = @_;

	my $plain = join('', map { scalar reverse_bytes($_) }
		$hash =~ /(.{16})/g);

	return "'\\x$plain'";
}

sub reverse_bytes { return join('', reverse($_[0] =~ /(..)/g)) }

# Checks that all objects are served as the file has them.

sub whole {
	my ($name, $bytes) = @_;

	my $json = $list{$name}->json();
	my $wrong = 0;

	for my $object (@{ $json->{objects} }) {
		for my $role (keys %{ $object->{components} }) {
			my $c = $object->{components}{$role};

			next if $c->{shard};

			my $r = zt($hash{$name}, '/data', i => $object->{i},
				role => $role);

			my $want = substr($bytes, $c->{offset}, $c->{length});

			$wrong++ if $r->{status} != 200 || $r->{body} ne $want;
		}
	}

	is($wrong, 0, "$name: all data as stored");
}

sub objects {
	my ($name) = @_;

	return @{ $list{$name}->json()->{objects} || [] };
}

# --------------------------------------------------------------------------
# container 1

# Checks that the file is listed, but not decoded.

sub decoded {
	my ($name, $bytes, $status, $code) = @_;

	is($list{$name}{status}, 200, "$name: listed");
	is(zt($hash{$name}, '/data', i => 0, form => 'decoded')->code(),
		"$status $code", "$name: not decoded");
	whole($name, $bytes);
}

sub unsound {
	my ($name, $code) = @_;

	my ($object) = grep { $_->{status} eq 'invalid' } objects($name);

	ok($object && grep({ $_ eq $code } @{ $object->{errors} }),
		"$name: $code") or diag($list{$name}{body});

	my ($role) = sort keys %{ $object->{components} };

	is(zt($hash{$name}, '/data', i => $object->{i}, role => $role)->code(),
		"422 $object->{errors}[0]", "$name: no data");
}

sub refused {
	my ($name, $code) = @_;

	is($list{$name}->code(), "422 $code", "$name: $code");
	is(zt($hash{$name}, '/data', i => 0)->code(), "422 $code",
		"$name: no data either");
}

sub unsupported {
	my ($name, $bytes, $code) = @_;

	my ($object) = grep { $_->{status} eq 'unsupported' } objects($name);

	is_deeply($object && $object->{errors}, [ $code ], "$name: $code")
		or diag($list{$name}{body});
	whole($name, $bytes);

	is(zt($hash{$name}, '/data', i => $object->{i}, form => 'decoded')
		->code(), '422 decode_unavailable', "$name: not decoded")
		if $code eq 'unsupported_encoding';
}

sub verified {
	my ($name, $bytes, $verdict) = @_;

	my $json = zt($hash{$name}, '/verify')->json();

	is($json->{objects}[0]{components}{data}, $verdict, "$name: $verdict");
	is(!!$json->{ok}, !!($verdict eq 'verified'), "$name: ok");
	whole($name, $bytes);
}

sub sound {
	my ($name, $bytes) = @_;

	is($list{$name}{status}, 200, "$name: listed");
	is_deeply([ grep { $_->{status} ne 'ok' } objects($name) ], [],
		"$name: valid objects");
	whole($name, $bytes);
}

for (rows('v1.1-edge/VECTORS.tsv')) {
	my ($name, $what, $outcome) = @$_;
	my $path = "$data/v1.1-edge/$name.zt";

	next unless -f $path;

	my $bytes = slurp($path);

	list($name, $bytes);

	$outcome = $settled{$name} // $outcome;

	if ($outcome =~ /^DECODE (\d+) (\w+)/) {
		decoded($name, $bytes, $1, $2);

	} elsif ($outcome =~ /^REJECT (\w+).*decode/) {
		decoded($name, $bytes, 422, $1);

	} elsif ($outcome =~ /^REJECT (\w+)/) {
		my $code = $codes{$1} // $1;

		$object{$code} ? unsound($name, $code) : refused($name, $code);

	} elsif ($outcome =~ /^UNSUPPORTED (\w+)/) {
		unsupported($name, $bytes, $1);

	} elsif ($outcome =~ /^VERIFY (\w+)/) {
		verified($name, $bytes, $1);

	} else {
		like($outcome, qr/^OK/, "$name: a supported case: $what");
		sound($name, $bytes);
	}
}

SKIP: {
	skip('not there', 8) unless $hash{'c03-no-header-blob-at-0'};

	my $strict = sub {
		return $t->get("/strict/v1/zt/$hash{$_[0]}$_[1]");
	};

	is_deeply($list{'c03-no-header-blob-at-0'}->json()->{warnings},
		[ 'missing_header_magic' ], 'c03: a warning');
	is($strict->('c03-no-header-blob-at-0', '')->code(),
		'422 bad_header_magic', 'c03: strict');

	is_deeply($list{'x06-overlap-partial'}->json()->{warnings},
		[ 'overlap' ], 'x06: a warning');

	my $json = $strict->('x06-overlap-partial', '')->json();

	is_deeply([ map { $_->{errors} } @{ $json->{objects} } ],
		[ [ 'overlap' ], [ 'overlap' ] ], 'x06: strict');
	is($strict->('x06-overlap-partial', '/data?i=0')->code(),
		'422 overlap', 'x06: strict, no data');

	my $error = $list{'c23-v1.0-layout'}->json()->{error};

	is($error->{container}, '1.0', 'c23: the version is named');
	is($list{'c24-v0.1-layout'}->json()->{error}{container}, '0.1',
		'c24: the version is named');

	# components decoded from zstd

	is(unpack('H*', zt($hash{'x25-zstd-ok'}, '/data', i => 0,
		form => 'decoded')->{body}), '0000803f00000040',
		'x25: decoded');
}

# --------------------------------------------------------------------------
# files made by the reference writer

for my $path (glob("$data/v1.1-reference-writer/*.zt")) {
	my ($name) = $path =~ m!([^/]+)\.zt\z!;
	my $bytes = slurp($path);

	list($name, $bytes);
	sound($name, $bytes);

	my $json = zt($hash{$name}, '/verify')->json();

	ok($json->{ok}, "$name: verified");
}

# --------------------------------------------------------------------------
# container 2

my %classes = (
	Name => [ qw/ invalid_name name_too_long / ],
	Schema => [ qw/ bad_manifest missing_field / ],
	BlobAlignment => [ 'misaligned' ],
	BlobBounds => [ 'out_of_bounds' ],
	BlobOverlap => [ 'overlap' ],
	CborDepth => [ qw/ nesting_too_deep bad_manifest / ],
	CborDuplicateKey => [ 'duplicate_key' ],
	CborSyntax => [ qw/ bad_manifest trailing_bytes / ],
	CborDeterminism => [ 'not_deterministic' ],
	LayoutRule => [ qw/ length_mismatch missing_component
		unexpected_component bad_index_dtype bad_shape / ],
	ManifestBounds => [ 'manifest_out_of_bounds' ],
	ManifestHash => [ 'manifest_hash_mismatch' ],
	ManifestTooLarge => [ 'manifest_too_large' ],
	DenseSize => [ 'length_mismatch' ],
	FileTooSmall => [ 'too_short' ],
	FooterMagic => [ 'bad_footer_magic' ],
	HeaderMagic => [ 'bad_header_magic' ],
	Shape => [ qw/ shape_overflow rank_too_large / ],
	ShardName => [ 'bad_shard_name' ],
	ShardRef => [ 'no_such_shard' ],
	Version => [ 'unsupported_version' ]
);

for (rows('v2-corpus/EXPECTED.tsv')) {
	my ($folder, $case, $operation, $expected) = @$_;

	my $name = "2/$case";
	my $bytes = slurp("$data/v2-corpus/$folder/$case.zt");

	my $r = list($name, $bytes);

	if ($operation eq 'Open' && $expected =~ /^Reject:(\w+)/) {
		my $class = $classes{$1};
		my ($code) = $r->code() =~ /^422 (\w+)/;

		ok(defined $code && grep({ $_ eq $code } @$class),
			"$name: $expected") or diag($r->{body});

	} elsif ($expected eq 'DataShard') {
		is($r->code(), '422 data_shard', "$name: no manifest");

	} else {
		is($r->{status}, 200, "$name: listed");
		is($r->json()->{container}, '2', "$name: container");
		whole($name, $bytes);
	}

	if ($operation =~ /^Verify/) {
		my $json = zt($hash{$name}, '/verify', name => 't')->json();

		is($json->{ok} ? 'Valid' : 'Reject', ($expected =~ /(\w+)/)[0],
			"$name: $expected");
	}

	if ($operation =~ /^View/) {
		is(zt($hash{$name}, '/data', name => 't',
			form => 'decoded')->code(), '422 decode_unavailable',
			"$name: $expected");
	}
}

$t->done();
