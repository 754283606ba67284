#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Keys of bodies, and arguments of requests, to all routes of a Hub.  Keys and
# values that the server supports are accepted, and those that request what the
# server always does.  All others are refused with the name of the key, and
# change nothing: no request succeeds without the effect that its client wants.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;

use JSON::PP ();

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1);
my $json = JSON::PP->new()->canonical();

$t->token_key();
$t->run();
$t->allow(qr/xet: 40[049] /, qr/xet: 501 /);

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $zeros = '0' x 64;
my $n = 0;

ok(ok_status(send_json('POST', '/api/repos/create', { name => 'm' })),
	'a model');
ok(ok_status(send_json('POST', '/api/buckets/me/b', {})), 'a bucket');

my $model = '/api/models/me/m';
my $bucket = '/api/buckets/me/b';

# Each row: method, path or a function that returns it, a body that is accepted
# (undef: none), keys that are accepted with a value, keys that are refused.

my @rows = (
	[ POST => '/api/repos/create', sub { { name => 'n' . ++$n } },
		[ organization => 'me', organization => undef, type => 'model',
			type => undef, private => $false, private => undef,
			visibility => 'private', sdk => undef, files => [],
			license => undef, gated => $false,
			lfsmultipartthresh => 1000 ],
		[ gated => 'auto', gated => $true, license => 'mit',
			privat => $true, private => 'yes', private => 1,
			visibility => 'protected', visibility => $true,
			type => 'kernel', sdk => 'gradio', name => 7,
			hardware => 'cpu', storageTier => 'small',
			sleepTimeSeconds => 5, secrets => [],
			variables => [], volumes => [], template => 'x',
			resourceGroupId => 'x', region => 'eu',
			existOk => $true, files => {} ] ],
	[ POST => '/api/repos/create', sub { { name => 'n' . ++$n,
			type => 'space' } },
		[ sdk => 'gradio', sdk => 'static' ],
		[ sdkVersion => '1', hardware => 'cpu' ] ],
	[ POST => '/api/repos/create', sub { { name => 'n' . ++$n,
			visibility => 'public' } },
		[ private => $false ], [ private => $true ] ],
	[ POST => '/api/repos/create', sub { { name => 'n' . ++$n,
			files => [ { path => 'a', content => '', @_ } ] } },
		[ encoding => 'base64', encoding => 'utf-8' ],
		[ mode => '755', encoding => 7 ], 'files' ],
	[ POST => sub { '/api/buckets/me/b' . ++$n }, {},
		[ private => $true, visibility => 'public', region => undef,
			resourceGroupId => undef ],
		[ region => 'us', resourceGroupId => 'x', cdn => [],
			gated => 'auto', name => 'x' ] ],
	[ PUT => "$model/settings", {},
		[ private => $false, visibility => 'public', gated => $false,
			xetEnabled => $true ],
		[ gated => 'manual', gated => 'auto', gated => $true,
			xetEnabled => $false, Private => $true,
			visiblity => 'private', description => 'x',
			discussionsDisabled => $true ] ],
	[ PUT => "$bucket/settings", {},
		[ private => $false ], [ gated => 'auto', cors => [] ] ],
	[ DELETE => '/api/repos/delete', sub {
			send_json('POST', '/api/repos/create',
				{ name => 'del' });
			return { name => 'del' } },
		[ organization => 'me', type => 'model' ],
		[ force => $true, private => $true ] ],
	[ POST => '/api/repos/move', { fromRepo => 'me/m', toRepo => 'me/m' },
		[ type => 'model' ], [ overwrite => $true ] ],
	[ POST => sub { "$model/branch/b" . ++$n }, {},
		[ startingPoint => 'main', emptyBranch => $false,
			emptyBranch => $true, overwrite => $true ],
		[ startingPiont => 'main', overwrite => 'yes', tag => 'x' ] ],
	[ POST => "$model/branch/main", { overwrite => $true,
			emptyBranch => $true }, [], [ startingPoint => 'x' ] ],
	[ DELETE => sub { send_json('POST', "$model/branch/gone");
			"$model/branch/gone" }, {}, [], [ force => $true ] ],
	[ POST => "$model/tag/main", sub { { tag => 't' . ++$n } },
		[ message => 'text' ], [ force => $true, message => 5 ] ],
	[ POST => "$model/super-squash/main", {},
		[ message => 'one' ], [ force => $true, message => 1 ] ],
	[ POST => "$model/preupload/main", { files => [] },
		[ gitIgnore => '*.o', gitAttributes => 'x' ],
		[ gitignore => '*.o', gitIgnore => [], create_pr => $true ] ],
	[ POST => "$model/preupload/main", sub { { files => [
			{ path => 'a', size => 1, @_ } ] } },
		[ sample => 'AA==', sha => $zeros ],
		[ mode => 'regular', sample => 5 ], 'files' ],
	[ POST => "$model/paths-info/main", { paths => [] },
		[ expand => $true ], [ recursive => $true, expand => 'yes' ] ],
	[ POST => "$bucket/paths-info", { paths => [] },
		[ expand => $true ], [ recursive => $true ] ],
	[ POST => "$model/lfs-files/duplicate", { files => [], target =>
			{ type => 'bucket', name => 'me/b' } },
		[], [ revision => 'main' ] ],
	[ POST => '/me/m.git/info/lfs/objects/batch', { operation => 'upload',
			objects => [] },
		[ transfers => [ 'basic' ], ref => { name => 'main' },
			ref => undef, hash_algo => 'sha256',
			hash_algo => 'sha_256' ],
		[ hash_algo => 'sha512', dry_run => $true ] ],
);

for my $row (@rows) {
	my ($method, $path, $body, $known, $unknown, $inner) = @$row;
	my $name = sub { return $method . ' ' . (ref $path ? 'route' : $path) };

	for my $list ([ 1, $known ], [ 0, $unknown ]) {
		my ($good, $keys) = @$list;

		for (my $i = 0; $i < @$keys; $i += 2) {
			my ($key, $value) = @$keys[$i, $i + 1];
			my $sent = ref $body ne 'CODE' ? { %$body }
				: $body->($inner ? ($key => $value) : ());

			$sent->{$key} = $value unless $inner;

			my $r = send_json($method, ref $path ? $path->()
				: $path, $sent);
			my $what = $name->() . ": $key = "
				. (ref $value || $value // 'null');

			if ($good) {
				ok(ok_status($r), "$what is accepted")
					or diag($r->summary());

			} else {
				refused($r, $key, $what);
			}
		}
	}
}

is($t->sql("SELECT count(*) FROM xet.hub_repos WHERE private"
	. ' AND kind < 3'), 1, 'only one accepted body made a private repo');

# --------------------------------------------------------------------------
# lines of commits and of batches

my %line = (
	header => { summary => 's' },
	file => { path => 'f', content => 'x' },
	lfsFile => { path => 'e', oid => $zeros },
	deletedFile => { path => 'f' },
	deletedFolder => { path => 'f' },
	copyFile => { path => 'f', srcPath => 'f' }
);

for my $key (sort keys %line) {
	my @lines = ({ key => 'header', value => { summary => 's' } },
		{ key => $key, value => { %{ $line{$key} }, oldPath => 'x' } });

	shift @lines if $key eq 'header';

	refused(lines("$model/commit/main", @lines), 'oldPath',
		"$key: oldPath");
	$lines[-1]{value} = $line{$key};
	$lines[-1]{when} = 'now';
	refused(lines("$model/commit/main", @lines), 'when', "$key: when");
}

refused(lines("$model/commit/main", { key => 'header', value => {
	summary => 's', parentCommit => 5 } }), 'parentCommit', 'a number');

for my $line ({ type => 'addFile', xetHash => $zeros },
	{ type => 'deleteFile' }, { type => 'copyFile', xetHash => $zeros,
		sourceRepoType => 'model', sourceRepoId => 'me/m' })
{
	refused(lines("$bucket/batch", { %$line, path => 'a',
		recursive => $true }), 'recursive', "$line->{type}: recursive");
}

ok(ok_status(lines("$bucket/batch", { type => 'addFile', path => 'a',
	xetHash => $zeros, size => 0, mtime => 5, contentType => 'a/b' },
	{ type => 'copyFile', path => 'b', xetHash => $zeros, mtime => 5,
	sourceRepoType => 'bucket', sourceRepoId => 'me/b', size => 0,
	contentType => undef })), 'keys of hf-hub');

# --------------------------------------------------------------------------
# forms

my %form = ('Content-Type' => 'application/x-www-form-urlencoded');

for my $row ([ 'expand=True', 1 ], [ 'expand=false', 1 ], [ 'expand=', 1 ],
	[ 'recursive=true', 'recursive' ], [ 'expand=maybe', 'expand' ],
	[ 'path=a', 'path' ], [ 'expanded', 'expanded' ])
{
	my $r = $t->post("$model/paths-info/main", \"paths=a&$row->[0]",
		\%form);

	$row->[1] eq '1' ? ok(ok_status($r), "a form: $row->[0]")
		: refused($r, $row->[1], "a form: $row->[0]");
}

# --------------------------------------------------------------------------
# arguments

my @args = (
	[ GET => $model, 'blobs=true expand=sha expand[]=likes'
		. ' expand%5B%5D=likes securityStatus=false full=true'
		. ' cardData=1', 'revision=x blob=true blobs=x' ],
	[ GET => "$model/revision/main", 'blobs=1', 'recursive=true' ],
	[ GET => $bucket, '', 'x=1' ],
	[ GET => "$model/tree/main", 'recursive=true expand=True limit=5'
		. ' cursor=a', 'recursive=yes recursive limit=0 limit=x'
		. ' limit=-1 depth=2' ],
	[ GET => "$bucket/tree", 'recursive=false limit=7', 'prefix=a' ],
	[ GET => "$model/commits/main", 'limit=5 expand[]=formatted',
		'since=2020 limit=a' ],
	[ GET => "$model/refs", 'include_prs=1', 'include_pr=1' ],
	[ GET => "$model/auth-check", '', 'x=1' ],
	[ POST => "$model/preupload/main", 'create_pr=0', 'dry_run=1' ],
	[ POST => "$model/commit/main", 'create_pr=false hot_reload=1',
		'dry_run=1 create_pr=x' ],
	[ GET => "$model/xet-read-token/main", 'create_pr=1', 'repo=x' ],
	[ GET => "$model/xet-write-token/main", 'create_pr=1 create_pr=False',
		'subject=x create_pr=x' ],
	[ GET => "$bucket/xet-write-token", '', 'scope=admin' ],
	[ POST => '/api/repos/create', '', 'exist_ok=true' ],
	[ PUT => "$model/settings", '', 'private=true' ],
	[ POST => "$model/branch/args", '', 'overwrite=true' ],
	[ POST => "$model/super-squash/main", '', 'force=1' ],
	[ POST => "$bucket/batch", '', 'dry_run=1' ],
	[ GET => '/me/m/resolve/main/none', 'download=true v=7', '' ],
);

for my $row (@args) {
	my ($method, $path, $known, $unknown) = @$row;

	for my $arg (split(' ', $known)) {
		my $r = $t->http($method, "$path?$arg", {}, $method eq 'GET'
			? undef : \'');

		unlike($r->{body}, qr/"(?:unknown_key|unsupported_value)"/,
			"$method $path?$arg is known");
	}

	for my $arg (split(' ', $unknown)) {
		my ($key) = $arg =~ /^([^=]+)/;

		refused($t->http($method, "$path?$arg", {}, $method eq 'GET'
			? undef : \'{}'), $key, "$method $path?$arg");
	}
}

refused($t->get("$model?" . 'k' x 500 . '=1'), 'k' x 63, 'a long name');

$t->stop();

done_testing();

# --------------------------------------------------------------------------

sub send_json {
	my ($method, $uri, $body) = @_;

	return $t->http($method, $uri, { 'Content-Type' => 'application/json' },
		\(defined $body ? $json->encode($body) : ''));
}

sub lines {
	my ($uri, @lines) = @_;

	return $t->post($uri,
		\join('', map { $json->encode($_) . "\n" } @lines),
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub ok_status {
	my ($r) = @_;

	return $r->{status} == 200 || $r->{status} == 201;
}

# Checks that a request was refused, and that the message names the key.

sub refused {
	my ($r, $key, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($r->{status}, 400, "$name is refused") or diag($r->summary());
	like(eval { $r->json()->{error} } // '', qr/key "\Q$key\E"/i,
		"$name: the key is named");
	like($r->header_value('X-Error-Message') // '', qr/"\Q$key\E"/,
		"$name: in the header");
}
