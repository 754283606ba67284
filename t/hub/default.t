#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The configurations that users get: the recipe of docs/hub.md, and the files
# that xet-setup and the container write, each with tokens.  On all routes of
# /api/ and /cas/, nobody can read, guess or register data of a private repo:
# neither with another user's token, nor with a token for another repo, nor with
# a token that the Hub gave to an anonymous caller for a public repo.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir root run_command slurp spew /;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $json = JSON::PP->new()->canonical();
my $hub_public = <<'EOC';
    map $xet_subject $who_is_of_a_team { alice team; default ""; }
    xet_hub_owners $who_is_of_a_team;
    xet_hub_public on;
EOC

my %confs = (
	'docs/hub.md' => \&conf_recipe,
	'xet-setup' => \&conf_setup,
	'container' => \&conf_container
);

for my $name (sort keys %confs) {
	my $t = Test::Xet->new(workers => 1);

	$t->write_conf($confs{$name}->($t));
	$t->run();
	$t->allow(qr/xet: 4\d\d /);
	attack($name, $t);
	shared($name, $t);
	works($name, $t);

	# done() would report descriptors in open_file_cache as leaked

	$t->write_conf(Test::Xet::default_conf());
	$t->reload();
	$t->check();
}

done_testing();

# --------------------------------------------------------------------------
# the configurations

# Returns conf/nginx.conf with the server of docs/hub.md, without the TLS lines.

sub conf_recipe {
	my ($t) = @_;

	my ($recipe) = slurp(root() . '/docs/hub.md')
		=~ /<!-- recipe: hub -->\n```nginx\n(.*?)```/s or die;
	my ($host) = $recipe =~ /server_name (\S+);/;
	my $text = $t->shipped_conf();

	$recipe =~ s/listen 443 ssl;/listen 127.0.0.1:%%PORT_8080%%;/ or die;
	$recipe =~ s/^ *(?:ssl_\w+|server_name|xet_require_tls) .*\n//mg;
	$recipe =~ s/^xet_token_key .*\n//m or die;
	$recipe =~ s!https://\Q$host\E!http://127.0.0.1:%%PORT_8080%%!g;
	$recipe =~ s!/etc/nginx/xet!%%DIR%%!g;
	$text =~ s/^    server \{.*?^    \}\n/$recipe/ms or die;

	return $text;
}

# Runs functions of a script in docker/ with these variables; returns the
# output.

sub of_script {
	my ($script, $calls, $run, %variables) = @_;

	my $text = slurp(root() . "/docker/$script");
	my $functions = join("\n", map {
		$text =~ /^(\Q$_\E\(\)\n\{.*?^\}\n)\n\n/ms
			or die "$script: $_\n";
		$1
	} @$calls);

	my ($status, $out) = run_command([ 'sh', '-euc',
		"$functions\n$run\n" ], env => { PATH => $ENV{PATH},
			%variables });

	die "$script: $out\n" if $status;

	return $out;
}

sub conf_setup {
	my ($t) = @_;

	$t->shipped_conf();

	my $url = $t->url('');
	my $server = of_script('debian/xet-setup', [ 'write_server' ],
		'write_server', conf => $t->dir(), store => $t->store(),
		conninfo => $t->conninfo(), listen => $url =~ s!http://!!r,
		url => $url, auth => 'token', cert => '');

	$server =~ s!/var/log/nginx!%%DIR%%!g;

	return "%%MAIN%%\nevents { }\nhttp {\n%%HTTP%%\n$hub_public\n"
		. "$server\n}\n";
}

sub conf_container {
	my ($t) = @_;

	my $dir = $t->dir();
	my ($port) = $t->url('') =~ /:(\d+)$/;

	$t->token_key();
	spew("$dir/keys/$_.key", slurp("$dir/$_.key"))
		for mkdir("$dir/keys") ? qw/ url dedup token / : ();
	chmod(0600, glob("$dir/keys/*"));

	of_script('entrypoint.sh',
		[ qw/ replace write_common owners_map write_server / ],
		'die() { echo "$*"; exit 1; }; write_server', data => $dir,
		share => root() . '/conf', run => $dir, base => $t->url(''),
		conninfo => $t->conninfo(), auth => 'token', workers => 1,
		owners => 'alice=team', public => 'on', addr => '127.0.0.1',
		port => $port, module => Test::Xet::Nginx::module());

	my $text = slurp("$dir/nginx.conf");

	$text =~ s!^load_module ;!!m;
	$text =~ s!^worker_processes!daemon off;\n$&!m or die;
	$text =~ s!error_log stderr;!error_log $dir/error.log;! or die;
	$text =~ s!/dev/stdout!$dir/access.log!;

	return $text;
}

# --------------------------------------------------------------------------
# the attack on the private repo

sub token {
	my ($t, @args) = @_;

	my ($status, $out) = run_command([ build_dir() . '/xet', 'token',
		'--key', $t->dir() . '/token.key', @args ]);

	die "xet token: $out\n" if $status;

	return { Authorization => 'Bearer ' . $out =~ s/\s+\z//r };
}

sub given {
	my ($t, $who, $repo, $scope) = @_;

	my $r = $t->get("/api/models/$repo/xet-$scope-token/main", $who);

	is($r->{status}, 200, "a token to $scope $repo");

	return { Authorization => 'Bearer ' . $r->json()->{accessToken} };
}

# Creates a repo with a file, uploaded as clients do.

sub repo {
	my ($t, $who, $name, $private, $data) = @_;

	my $owner = (split(/\//, $name))[0];

	is($t->http('POST', '/api/repos/create', $who, \$json->encode({
		organization => $owner, name => $name =~ s!.*/!!r,
		private => $private ? JSON::PP::true : JSON::PP::false }))
		->{status}, 200, "a repo $name");

	my $file = $t->upload($data, base => '/cas/v1',
		headers => given($t, $who, $name, 'write'));

	is($t->http('POST', "/api/models/$name/commit/main", { %$who,
		'Content-Type' => 'application/x-ndjson' }, \join("\n", map {
		$json->encode($_) } { key => 'header', value => {
		summary => 's' } }, { key => 'lfsFile', value => {
		path => 'f.bin', algo => 'sha256', oid => $file->{sha256},
		size => length($data) } }))->{status}, 200,
		"a commit to $name");

	return $file;
}

sub attack {
	my ($conf, $t) = @_;

	my $secret = mix(1, 900_000);
	my $alice = token($t, qw/ --subject alice --scope delete /);
	my $bob = token($t, qw/ --subject bob --scope delete /);
	my $file = repo($t, $alice, 'alice/secret', 1, $secret);

	repo($t, $alice, 'alice/open', 0, mix(2, 300_000));
	repo($t, $bob, 'bob/own', 1, mix(3, 300_000));

	my $known = $file->{xorbs}[0]{chunks}[0]{hash};
	my %who = (
		'given to nobody' => given($t, {}, 'alice/open', 'read'),
		'given to bob' => given($t, $bob, 'bob/own', 'write'),
		'bob' => $bob,
		'of a repo' => token($t, qw/ --repo bob --scope delete /),
		'nobody' => {}
	);

	for my $name (sort keys %who) {
		for my $base ('/api', '/cas') {
			reads("$conf: $name", $t, $who{$name}, $base, $file,
				$known);
			writes("$conf: $name", $t, $who{$name}, $base, $file,
				$secret);
		}
	}

	# alice's repo is unchanged

	is($t->get('/alice/secret/resolve/main/f.bin', $alice)->{body},
		$secret, "$conf: alice reads it");
}

# Checks that responses for an existing file and for a missing one are alike.

sub reads {
	my ($name, $t, $who, $base, $file, $known) = @_;

	my ($hash, $xorb) = ($file->{hash}, $file->{xorbs}[0]{hash});
	my $none = 'e' x 64;

	for my $route ([ GET => "v1/files/$hash" ],
		[ HEAD => "v1/files/$hash" ],
		(map { [ GET => $_ ], [ HEAD => $_ ] }
			map { "v$_/reconstructions/$hash" } 1, 2),
		[ GET => "reconstruction/$hash" ],
		[ GET => "v1/reconstructions?file_id=$hash" ],
		[ GET => "v2/file-chunk-hashes/$hash" ],
		[ GET => "v1/chunks/default-merkledb/$known" ],
		[ GET => "chunk/default-merkledb/$known" ],
		[ HEAD => "v1/xorbs/default/$xorb" ],
		[ GET => "v1/xorbs/default/$xorb" ],
		[ HEAD => "xorb/default/$xorb" ],
		[ GET => "v1/zt/$hash" ],
		(map { [ GET => "v1/zt/$hash/$_?name=x" ] }
			qw/ object data reconstruction verify /))
	{
		my ($method, $path) = @$route;
		my @told = map { $t->http($method, "$base/$_", $who) } $path,
			$path =~ s/$hash|$xorb|$known/$none/r;

		# short() keeps file contents out of the test output

		is(short($told[0]), short($told[1]) =~ s/$none/$hash/gr,
			"$name: $method $base/" . $path =~ s/[0-9a-f]{64}/_/r);
		ok($told[0]{body} !~ /$xorb|"terms"/,
			"$name: no xorb or term");
	}
}

sub short {
	my ($r) = @_;

	return "$r->{status} " . (length($r->{body}) < 400 ? $r->{body}
		: length($r->{body}) . ' bytes');
}

# Guessed contents: the response does not reveal whether they exist, and only
# data that was sent is registered.

sub writes {
	my ($name, $t, $who, $base, $file, $secret) = @_;

	# a part of the contents that was not sent with this token before

	my $r = $t->http('PUT', "$base/v1/files", $who, \substr($secret,
		$base eq '/api' ? 0 : length($secret) / 2,
		length($secret) / 2));

	if ($r->{status} == 200) {
		is($r->json()->{deduplicated_bytes}, 0,
			"$name: PUT $base/v1/files: as if it were new");

	} else {
		like($r->{status}, qr/^40[134]$/, "$name: PUT $base/v1/files");
	}

	# a caller can't name a xorb without its bytes

	my $guess = make_shard({ files => [ { verification => JSON::PP::true,
		terms => [ { xorb => $file->{xorbs}[0]{hash}, start => 0,
			end => 1 } ] } ], xorbs => [ $file->{xorbs}[0] ],
		footer => 'none' });

	$r = $t->http('POST', "$base/v1/shards", $who,
		\($guess->{bytes} =~ s/\Q@{[ pack('H*', '00' x 8) ]}\E\z//r));

	like($r->{status}, qr/^40[0134]$/, "$name: POST $base/v1/shards")
		if $r->{status} != 200;

	for ([ DELETE => "v1/files/$file->{hash}" ]) {
		my ($method, $path) = @$_;

		like($t->http($method, "$base/$path", $who)->{status},
			qr/^40[134]$/, "$name: $method $base/files");
	}
}

# --------------------------------------------------------------------------
# two files of one commit share a xorb, and only one of the files becomes public

sub shared {
	my ($conf, $t) = @_;

	my $alice = token($t, qw/ --subject alice --scope write /);
	my ($secret, $told) = map { random_bytes($_, 40_000) } 71, 72;
	my %file = (secret => $secret, told => $told);

	for ([ 'both', 1 ], [ 'page', 0 ]) {
		my $text = $json->encode({ organization => 'alice',
			name => $_->[0], private => $_->[1] ? JSON::PP::true
				: JSON::PP::false });

		is($t->http('POST', '/api/repos/create', $alice, \$text)
			->{status}, 200, "$conf: a repo alice/$_->[0]");
	}

	is(commit($t, $alice, 'alice/both', map { { key => 'file', value => {
		path => $_, encoding => 'base64', content =>
		encode_base64($file{$_}, '') } } } sort keys %file), 200,
		"$conf: two files in a commit");

	my %hash = map { $_ => $t->head("/alice/both/resolve/main/$_", $alice)
		->header_value('X-Xet-Hash') } keys %file;
	my $sha256 = sha256_hex($told);

	is($t->http('POST', '/api/models/alice/both/lfs-files/duplicate',
		$alice, \$json->encode({ target => { type => 'model',
		name => 'alice/page' }, files => [ { xetHash => $hash{told},
		sha256 => $sha256, filename => 'told' } ] }))->{status}, 200,
		"$conf: one is copied");
	is(commit($t, $alice, 'alice/page', { key => 'lfsFile', value => {
		path => 'told', algo => 'sha256', oid => $sha256,
		size => length($told) } }), 200, "$conf: and committed");

	my $who = given($t, {}, 'alice/page', 'read');
	my $plan = $t->get("/cas/v1/reconstructions/$hash{told}", $who)
		->json();
	my ($xorb) = keys %{ $plan->{fetch_info} };
	my ($part) = @{ $plan->{fetch_info}{$xorb} };
	my ($url) = $part->{url} =~ m!^https?://[^/]+(/.*)!;
	my ($from, $to) = @{ $part->{url_range} }{qw/ start end /};

	is(join(' ', keys %{ $t->get("/cas/v1/reconstructions/$hash{secret}",
		given($t, $alice, 'alice/both', 'read'))->json()->{fetch_info}
		}), $xorb, "$conf: both are in one xorb");
	is($t->get("/alice/page/resolve/main/told")->{body}, $told,
		"$conf: the public one is read");
	is($t->get($url, { Range => "bytes=$from-$to" })->{status}, 206,
		"$conf: and its part of the xorb");

	my $all = join('', map { $t->get(@$_)->{body} }
		[ $url ], [ $url, { Range => 'bytes=0-' } ],
		(map { [ $url, { Range => "bytes=$_" } ] }
			'0-' . ($from ? $from - 1 : $to + 1),
			"$from-" . ($to + 1),
			($to + 1) . '-' . ($to + 99)),
		[ "/cas/v1/xorbs/default/$xorb", $who ],
		[ "/cas/v1/files/$hash{secret}", $who ],
		[ "/cas/v1/reconstructions/$hash{secret}", $who ],
		[ "/cas/v2/file-chunk-hashes/$hash{secret}", $who ],
		(map { [ '/cas/v1/chunks/default-merkledb/'
			. hash_file($file{$_})->{chunks}[0]{hash}, $who ] }
			sort keys %file));

	for my $at (0, 9_000, 39_900) {
		is(index($all, substr($secret, $at, 24)), -1,
			"$conf: nothing of the private one at $at");
	}

	my $chunk = hash_file($secret)->{chunks}[0]{hash};

	unlike($all, qr/$chunk/, "$conf: nor its chunk in hexadecimal");
	is(index($all, $_), -1, "$conf: nor in a shard")
		for pack('H*', $chunk), join('', map { scalar
			reverse(pack('H*', $_)) } $chunk =~ /(.{16})/g);
}

sub commit {
	my ($t, $who, $repo, @operations) = @_;

	return $t->http('POST', "/api/models/$repo/commit/main", { %$who,
		'Content-Type' => 'application/x-ndjson' }, \join("\n",
		map { $json->encode($_) } { key => 'header', value => {
		summary => 's' } }, @operations))->{status};
}

# --------------------------------------------------------------------------
# the documented usage works

sub works {
	my ($conf, $t) = @_;

	my $team = token($t, qw/ --repo team --scope write /);
	my $file = $t->upload(mix(4, 200_000), headers => $team);

	is($t->get("/api/v1/files/$file->{hash}", $team)->{body},
		mix(4, 200_000), "$conf: xet token --repo team");
	is($t->http('PUT', '/api/v1/files', token($t,
		qw/ --subject alice --scope write /), \'x')->json()->{error}
		{code}, 'insufficient_scope',
		"$conf: a token without a repo writes nothing");
}
