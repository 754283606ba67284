#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# RamaLama (see t/clients/setup.sh) pulls GGUF files by a tag, by a name and by
# a URL, models in several files, and an interrupted file.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ reap run_command slurp spawn spew wait_for /;
use Test::Xet::Table;

use File::Find qw/ find /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $program = Test::Xet::Real::build() . '/clients/ramalama/bin/ramalama';

plan(skip_all => 'RamaLama is not installed') unless -x $program;

# a large file takes some seconds

my %hub = Test::Xet::Table::hub('xet_auth token; xet_hub_public on;'
	. ' limit_rate 20m;', Test::Xet::Token::token_location());

$hub{http} .= ' log_format rama "$request_method $uri $status $http_range";'
	. ' access_log %%DIR%%/rama.log rama;';

my $t = Test::Xet->new(%hub, workers => 1);

$t->allow(qr/xet: 4\d\d /);
$t->token_key();
$t->run();

my $alice = $t->auth('admin', '@alice');
my $token = $alice->{Authorization} =~ s/^Bearer //r;
my $table = Test::Xet::Table->new($t);
my ($mark, $marks, %data, @seen) = (0, 0);

# --------------------------------------------------------------------------
# tags, names and URLs

create('m', 0, qw/ a-Q4_K_M.gguf a-Q8_0.gguf config.json /);

pulls('hf://alice/m', {}, qw/ a-Q4_K_M.gguf config.json /);
pulls("hf://alice/m:$_", {}, qw/ a-Q8_0.gguf config.json /)
	for qw/ Q8_0 q8_0 /;
pulls('hf://alice/m/a-Q8_0.gguf', {}, qw/ a-Q8_0.gguf config.json /);
pulls($t->url('/alice/m/resolve/main/a-Q8_0.gguf'), {}, 'a-Q8_0.gguf');

pulls('hf://alice/m', { machine => 'first' }, qw/ a-Q4_K_M.gguf config.json /);
pulls('hf://alice/m', { machine => 'first' }, qw/ a-Q4_K_M.gguf config.json /);
is(@seen, 0, 'again: no request');

fails("hf://alice/$_", {}) for qw! m:Q9 none none:Q9 !;
fails('hf://alice/m/none.gguf', {});

create('secret', 1, 's-Q4_0.gguf');
fails("hf://alice/secret$_", {}) for '', ':Q4_0', '/s-Q4_0.gguf';
pulls("hf://alice/secret$_", { token => $token }, 's-Q4_0.gguf')
	for '', ':Q4_0', '/s-Q4_0.gguf';

# --------------------------------------------------------------------------
# models in several files

my @parts = map { "Q8_0/p-Q8_0-0000$_-of-00003.gguf" } 1 .. 3;
my @tensors = ('.gitattributes', 'config.json', 'tokenizer.json',
	'model.safetensors.index.json',
	map { "model-0000$_-of-00002.safetensors" } 1, 2);

create('parts', 0, @parts, 'mmproj-p-F16.gguf');
pulls('hf://alice/parts', {}, @parts, 'mmproj-p-F16.gguf');

$data{tensors}{'.gitattributes'} = '';
create('tensors', 0, @tensors);
pulls('hf://alice/tensors', {}, @tensors);

# --------------------------------------------------------------------------
# interrupted downloads

my $big = $table->dir() . '/big-Q4_0.gguf';

create('big', 0);
spew($big, gguf(1, 60_000_000));
$data{big}{'big-Q4_0.gguf'} = slurp($big);
$table->hf('a large file', { token => $token }, 'upload', 'alice/big', $big);

for my $who (qw/ client server /) {
	my %o = (machine => $who);
	my $parts = $table->machine($who)
		. '/store/store/huggingface/alice/big/blobs/*.partial';
	my $pid = do {
		local %ENV = $table->env({ token => '', %o });

		spawn([ command('hf://alice/big') ]);
	};

	ok(wait_for(60, sub {
		my ($part) = glob($parts);
		return $part && -s $part > 4_000_000;
	}), "interrupted $who: a part is there");
	look();

	if ($who eq 'client') {
		kill('INT', $pid);
		reap($pid, 10);
		pulls('hf://alice/big', \%o, 'big-Q4_0.gguf');

	} else {
		$t->kill_worker();
		is(reap($pid, 60), 0, 'interrupted server: the run goes on');
		is_deeply([ pulled(\%o) ], [ 'big-Q4_0.gguf' ],
			'interrupted server: the file');
		look();
	}

	ok(scalar(grep { m!206 bytes=([1-9]\d{6,})-$! } @seen),
		"interrupted $who: only the rest") or diag(@seen);
}

$t->done();

# --------------------------------------------------------------------------

sub command {
	my ($name) = @_;

	return ($program, '--nocontainer', '--store', "$ENV{HOME}/store",
		'pull', $name);
}

# Runs "ramalama pull" with the store of a machine; returns its status and its
# output.

sub run {
	my ($name, $o) = @_;

	look();

	local %ENV = $table->env($o);
	my @result = run_command([ command($name) ], timeout => 120);

	look();

	return @result;
}

# Checks that a store gets the files, with their bytes.

sub pulls {
	my ($name, $o, @files) = @_;

	$o = { token => '', machine => 'm' . ++$marks, %$o };

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($status, $out) = run($name, $o);
	my $what = $name =~ s!^http://[^/]+!!r . ": @files";

	ok($status == 0, "pull $what") or diag("status $status\n$out", @seen);
	is_deeply([ pulled($o) ], [ sort @files ], "pulled $what");
}

sub fails {
	my ($name, $o) = @_;

	$o = { token => '', machine => 'm' . ++$marks, %$o };

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($status, $out) = run($name, $o);

	isnt($status, 0, "$name fails");
	like($out, qr/Error: Failed to pull model: /, "$name: why");
	is(grep({ m!/resolve/! } @seen), 0, "$name: no file is requested");
	is_deeply([ pulled($o) ], [], "$name: no file");
}

# Returns the names of the files in a store whose bytes are those of the repo.

sub pulled {
	my ($o) = @_;

	my $store = $table->machine($o->{machine}) . '/store';
	my @found;

	find({ no_chdir => 1, wanted => sub {
		my ($repo, $name) = m!/alice/(\w+)/.*?/?snapshots/[^/]+/(.*)!;

		push @found, $name if -f && defined $name
			&& slurp($_) eq ($data{$repo}{$name} // 'none');
	} }, $store) if -d $store;

	@found = sort @found;

	return @found;
}

# Sets @seen to the requests since the last call.  The request that it sends is
# logged after all that were answered before.

sub look {
	my $uri = '/look/' . ++$marks;

	$t->get($uri);
	wait_for(10, sub { $t->read_file('rama.log') =~ /^GET \Q$uri\E /m });

	my $log = $t->read_file('rama.log');

	@seen = grep { !m!^\w+ /look/! } split(/^/, substr($log, $mark));
	$mark = length($log);
}

sub gguf {
	my ($seed, $size) = @_;

	return 'GGUF' . pack('VQ<Q<', 3, 0, 0)
		. Test::Xet::Bytes::random_bytes($seed, $size);
}

# Creates a repo with these files, of new bytes.

sub create {
	my ($name, $private, @paths) = @_;

	is($t->post('/api/repos/create', \JSON::PP::encode_json({
		name => $name, private => $private ? JSON::PP::true()
		: JSON::PP::false() }), $alice)->{status}, 200, "repo $name");

	return unless @paths;

	my $files = $data{$name} ||= {};

	$files->{$_} //= /\.json$/ ? "{\"file\":\"$_\"}" : gguf(++$marks, 30000)
		for @paths;

	my $r = $t->post("/api/models/alice/$name/commit/main", \join("\n",
		map { JSON::PP::encode_json($_) } { key => 'header', value =>
		{ summary => 'files' } }, map { { key => 'file', value => {
		path => $_, encoding => 'base64',
		content => encode_base64($files->{$_}, '') } } } @paths),
		{ %$alice, 'Content-Type' => 'application/x-ndjson' });

	is($r->{status}, 200, "files of $name");
}
