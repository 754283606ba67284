#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# docs/openapi.yaml has exactly the routes of the router and the error statuses
# of the core.  schemathesis generates valid and invalid requests from this
# file.  A running server sends only responses that the file describes.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/
	build_dir module_table patience root run_command slurp
/;
use Test::Xet::Ztensor;

use File::Spec ();

my $yaml = slurp(root() . '/docs/openapi.yaml');

# --------------------------------------------------------------------------
# splits the document into its parts; its layout is fixed, so no YAML parser is
# needed

my ($path_part) = $yaml =~ /^paths:\n(.*?)^components:$/ms;
my ($response_part) = $yaml =~ /^  responses:\n(.*?)^  schemas:$/ms;

# a path item is defined at its first path; other paths are aliases of it

my %items = $path_part =~ m!^  (/\S*):(?: &\w+)?\n((?:    .*\n)+)!gm;
my %anchors = reverse $path_part =~ m!^  (/\S*): &(\w+)\n!gm;
my %aliases = $path_part =~ m!^  (/\S*): \*(\w+)\n!gm;
my %paths = ((map { $_ => $_ } keys %items),
	map { $_ => $anchors{$aliases{$_}} // 'none' } keys %aliases);

is($path_part =~ s!^  /\S*:(?: &\w+)?\n(?:    .*\n)+!!gmr
	=~ s!^  /\S*: \*\w+\n!!gmr =~ s!^\s*(?:#.*)?\n!!gmr, '',
	'paths: nothing but items and aliases');

my (%methods, %statuses);

for my $item (keys %items) {
	my %ops = $items{$item} =~
		/^ {4}(get|head|post|put|delete):\n((?: {6}.*\n)+)/gm;

	$methods{$item} = [ sort map { uc } keys %ops ];
	$statuses{$item}{uc $_} = [ $ops{$_} =~ /^        '(\d+)':/gm ]
		for keys %ops;
}

# --------------------------------------------------------------------------
# routes

my (%is, %said);

for my $route (@{ module_table('routes') }) {
	my $rest = $route->{form} =~ s/:\w+/{}/gr;

	for my $version (map { $_ eq '' ? '' : "$_/" }
		@{ $route->{versions} })
	{
		$is{"$_ /api/$version$rest"} = 1
			for @{ $route->{methods} };
	}
}

for my $path (keys %paths) {
	next if $path !~ m!^/api/!;

	ok($methods{$paths{$path}}, "$path: has methods") or next;
	$said{"$_ " . $path =~ s/\{\w+\}/{}/gr} = 1
		for @{ $methods{$paths{$path}} };
}

cmp_ok(scalar(keys %is), '>', 30, 'the router has routes');
is(join(', ', grep { !$said{$_} } sort keys %is), '',
	'all routes are described');
is(join(', ', grep { !$is{$_} } sort keys %said), '',
	'all described routes exist');

is(join(', ', grep { !m!^/api/! } sort keys %paths),
	'/token, /v1/telemetry, /xorbs/default/{aa}/{name}',
	'routes outside the router');

my %used = map { $_ => 1 } values %aliases;

is(join(', ', grep { !$used{$_} } sort keys %anchors), '',
	'all anchors are used');

# every error status of the core that a route can send

my $status_h = slurp(root() . '/src/core/base/xet_base.h');
my %core = map { $_ => 1 } $status_h =~
	/X\((?!ZT_|OK|AGAIN|DONE)\w+, \s* "\w+", \s* (\d+),/gx;
my %there = map { $_ => 1 } map { map { @$_ } values %$_ } values %statuses;

cmp_ok(scalar(keys %core), '>', 8, 'the core has statuses');
is(join(', ', grep { !$there{$_} } sort keys %core), '',
	'all statuses of the core are described');

# every reference is defined

my @dead;

while ($yaml =~ m!\$ref: '#/components/(\w+)/(\w+)'!g) {
	my ($group, $name) = ($1, $2);

	push @dead, "$group/$name" unless $yaml =~
		/^  \Q$group\E:\n(?:(?:    .*)?\n)*?    \Q$name\E:\n/m;
}

is("@dead", '', 'references');

# --------------------------------------------------------------------------
# a server with contents

my $st = File::Spec->rel2abs(build_dir() . '/venv/bin/st');

if (!-x $st) {
	fail("no schemathesis in $st, run t/clients/setup.sh");
	done_testing();
	exit;
}

my $t = Test::Xet->new(workers => 2, log => 'info',
	http => <<'EOF', server => <<'EOF');
large_client_header_buffers  8 72k;
    xet_token_key  %%DIR%%/token.key;
    log_format     met "$request_method $status $request_uri";
    access_log     %%DIR%%/met.log met;
EOF
location = /token {
            xet_token;
            xet_token_scope  read;
        }
EOF

$t->write_file('token.key', 'token:t1:' . '70' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');
$t->run();

my @files = map { $t->upload(mix($_, 200000 * $_), xorb_chunks => 3) } 1 .. 3;
my $zt = $t->upload(zt_file([ [ 't', { shape => [ 50 ],
	data => random_bytes(4, 200) } ] ])->{bytes});
my @xorbs = map { @{ $_->{xorbs} } } @files;
my @chunks = map { $_->{xorbs}[0]{chunks}[0]{hash} } @files;

# a data URL, as clients get it

my ($entry) = map { @$_ } values
	%{ $t->get("/api/v1/reconstructions/$files[0]{hash}")->json()
	->{fetch_info} };
my ($signed, %query) = $entry->{url} =~ m!/xorbs/default/../([\w.]+)\?(.*)!
	? ($1, map { split(/=/, $_, 2) } split(/&/, $2)) : ();

$t->write_file("bodies/$_->{hash}", $_->{bytes}) for @xorbs;
$t->write_file('bodies/shard', $files[0]{shard});
$t->write_file('bodies/stay', join("\n", map { $_->{hash} } @files, $zt));
$t->write_file('bodies/goes', join("\n", map { $t->upload(mix($_, 1000))
	->{hash} } 4, 5));

# --------------------------------------------------------------------------
# a copy of the document with existing objects as examples, because schemathesis
# often uses examples

my %known = (
	File => [ map { $_->{hash} } @files ],
	ZtFile => [ $zt->{hash} ],
	Chunk => \@chunks,
	Xorb => [ map { $_->{hash} } @xorbs ],
	Name => [ $signed ],
	Shard => [ '0' x 64 ],
	Aa => [ substr($signed, 0, 2) ],
	Range => [ 'bytes=0-99', 'bytes=100000-' ],
	RangeDirty => [ 'bytes=1000-2000', 'bytes=0-9,150000-160000' ],
	DataRange => [ "bytes=$entry->{url_range}{start}-"
		. $entry->{url_range}{end} ],
	SignedRanges => [ $query{r} ],
	Expiry => [ $query{e} ],
	Key => [ $query{k} ],
	Signature => [ $query{s} ]
);

my $copy = $yaml;

for my $name (keys %known) {
	my @values = map { "'$_'" } @{ $known{$name} };

	my $known = "      schema:\n        anyOf:\n          - enum: ["
		. join(', ', @values) . "]\n          - ";

	ok($copy =~ s{^([ ]{4}\Q$name\E:\n[ ]{6}name:[ ].*?\n)[ ]{6}schema:\n
			((?:[ ]{8}[^\n]*\n)+)}{
			"$1      example: $values[0]\n$known"
			. ($2 =~ s/^ {8}//r =~ s/^ {8}/            /gmr)
		}mesx, "$name: known values");
}

ok($copy =~ s!^(    FileIds:\n)!$1      example: ['@{[ join("', '",
	map { $_->{hash} } @files) ]}']\n!m, 'FileIds: known values');

my $file = $t->write_file('openapi.yaml', $copy);

# --------------------------------------------------------------------------
# The stateful phase is omitted, because there are no links.  Two checks are
# omitted: that all invalid input is refused (negative_data_rejection), and that
# all valid input is accepted.  Neither is true here: nginx and the routes
# ignore unknown arguments and headers, and a valid hash need not exist.

$ENV{SCHEMATHESIS_HOOKS} = root() . '/t/clients/openapi_hooks.py';
$ENV{XET_BODIES} = $t->dir() . '/bodies';
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

my ($status, $out) = run_command([ $st, 'run', $file, '--url', $t->url(''),
	'--checks', 'not_a_server_error,status_code_conformance,'
		. 'content_type_conformance,response_schema_conformance',
	'--phases', 'examples,coverage,fuzzing', '--seed', '1',
	'--max-examples', 8, '--generation-database', 'none',
	'--suppress-health-check', 'all', '--request-timeout', 20,
	'--continue-on-failure', '--no-shrink', '--no-color',
	'--warnings', 'off' ], timeout => patience(140));

is($status, 0, 'schemathesis finds nothing') or diag($out);

# --------------------------------------------------------------------------
# every route was requested

my %met;

for my $line (split(/\n/, $t->read_file('met.log'))) {
	my ($method, $code, $uri) = split(/ /, $line =~ s/\?.*//r, 3);

	for my $path (keys %paths) {
		my $re = join('[^/]+', map { quotemeta }
			split(/\{\w+\}/, $path, -1));

		$met{"$method $path"}{$code}++ if $uri =~ /\A$re\z/;
	}
}

for my $path (sort keys %paths) {
	for my $method (@{ $methods{$paths{$path}} }) {

		# the access log does not contain requests to this location

		if ($path eq '/v1/telemetry') {
			like($t->log(), qr!"$method $path !, "$method $path");
			next;
		}

		# this server has no repos; t/api/delete.t tests repos

		my $want = $method ne 'DELETE' ? 200
			: $path =~ /repo/ ? 403 : 204;

		# this server has no bucket; t/s3/grants.t tests buckets

		$want = 404 if $path =~ m!/grant/!;

		$want = 206 if $path =~ m!^/xorbs/!;

		# 206 if only requests with a range succeeded

		$want = 206 if $path =~ m!/data\z!
			&& !$met{"$method $path"}{200};

		ok($met{"$method $path"}{$want}, "$method $path: $want")
			or diag(join(', ', map { "$_: "
			. $met{"$method $path"}{$_} }
			sort keys %{ $met{"$method $path"} || {} }));
	}
}

is($t->get('/api/health')->{status}, 200, 'the server is healthy');

my $all = $t->download($files[2]{hash}, size => 600000);

is_deeply($all->{errors}, [], 'a file is unchanged');

$t->done();
