# The release's static binary, for Nix: nix-env -if netdyno.nix, or callPackage. scripts/packages fills in what stands between @.
{ pkgs ? import <nixpkgs> { } }:
let
  version = "@VERSION@";
  machine = pkgs.stdenv.hostPlatform.parsed.cpu.name;
  hashes = {
@HASHES@
  };
in
pkgs.stdenvNoCC.mkDerivation {
  pname = "netdyno";
  inherit version;
  src = pkgs.fetchurl {
    url = "@URL@/netdyno-${version}-${machine}-linux.tar.gz";
    hash = hashes.${machine} or (throw "netdyno ${version} has no binary for ${machine}");
  };
  dontStrip = true;
  dontPatchELF = true;
  installPhase = ''
    mkdir -p $out
    cp -R bin share $out/
    cp -R doc README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE LICENSES-THIRD-PARTY $out/share/
  '';
  meta = {
    description = "Dynamometer for networks";
    homepage = "@REPOSITORY@";
    license = with pkgs.lib.licenses; [ mit asl20 ];
    platforms = [ "x86_64-linux" "aarch64-linux" ];
    mainProgram = "netdyno";
  };
}
